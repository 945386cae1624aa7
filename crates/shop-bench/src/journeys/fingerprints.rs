//! Answers that stay the same under load: a fingerprint of each, by the shipped shop.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

/// Categories and words that users look for.
pub(super) const CATEGORIES: [&str; 5] = ["comedy", "concert", "dance", "reading", "theatre"];
pub(super) const WORDS: [&str; 12] = [
    "blue", "electric", "garden", "golden", "harbour", "lanterns", "lost", "monday", "northern",
    "silver", "velvet", "wild",
];

/// Fingerprints of the answers to a sample of requests to the data of `init-db`: `FINGERPRINT PATH`.
const SHIPPED: &str = include_str!("fingerprints.txt");
/// Fields that change while users buy.
const CHANGING: [&str; 4] = ["available", "from_cents", "has_poster", "is_free"];
/// One event in so many is in the sample.
const SAMPLED: usize = 10;
/// Events that `init-db` makes up.
const EVENTS: usize = 2000;

/// Fingerprints of the shipped shop's answers, by path.
#[derive(Debug)]
pub(crate) struct Fingerprints(BTreeMap<&'static str, &'static str>);

impl Fingerprints {
    pub(crate) fn shipped() -> Self {
        let mut answers = BTreeMap::new();
        for line in SHIPPED.lines() {
            if let Some((fingerprint, path)) = line.split_once(' ') {
                answers.insert(path, fingerprint);
            }
        }
        Self(answers)
    }

    /// Returns whether the answer is the shipped shop's, as far as it is in the sample.
    pub(crate) fn is_right(&self, path: &str, answer: &Value) -> bool {
        match self.0.get(path) {
            Some(shipped) => of(answer) == *shipped,
            None => true,
        }
    }
}

/// Paths of the sample.
pub fn sample() -> Vec<String> {
    let mut paths = Vec::new();
    for category in CATEGORIES {
        for page in 0..5 {
            paths.push(format!("/events?category={category}&page={page}"));
        }
    }
    for word in WORDS {
        paths.push(format!("/search?q={word}"));
    }
    for event in (SAMPLED..=EVENTS).step_by(SAMPLED) {
        paths.push(format!("/events/{event}"));
        paths.push(format!("/events/{event}/seats"));
    }
    paths
}

/// A number that changes with every field but those that change while users buy: 64-bit FNV-1a, in hexadecimal.
pub fn of(answer: &Value) -> String {
    let mut text = String::new();
    write_stable(answer, &mut text);
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("{hash:016x}")
}

/// Writes what does not change, with fields by name: their order is the shop's own.
fn write_stable(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut names: Vec<&String> = fields.keys().collect();
            names.sort_unstable();
            for name in names {
                if !CHANGING.contains(&name.as_str()) {
                    _ = write!(text, "{name}:");
                    write_stable(&fields[name], text);
                }
            }
            text.push('}');
        }
        Value::Array(entries) => {
            for entry in entries {
                write_stable(entry, text);
            }
            text.push(']');
        }
        // 90 and 90.0 are the same number.
        Value::Number(number) => _ = write!(text, "{};", number.as_f64().unwrap_or(f64::NAN)),
        other => _ = write!(text, "{other};"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_fingerprint_sees_each_field_that_stays() {
        let shipped = parsed(r#"{"id":1,"x":90,"seats":[{"row":2,"is_free":true}],"available":3}"#);
        let same = parsed(r#"{"seats":[{"is_free":false,"row":2}],"available":0,"x":90.0,"id":1}"#);
        assert_eq!(of(&shipped), of(&same));
        for other in [
            r#"{"id":1,"x":91,"seats":[{"row":2}]}"#,
            r#"{"id":1,"x":90,"seats":[]}"#,
            r#"{"id":1,"seats":[{"row":2}]}"#,
            r#"{"id":1,"x":90,"seats":[{"row":2}],"new":null}"#,
        ] {
            assert_ne!(of(&shipped), of(&parsed(other)), "{other}");
        }
    }

    #[test]
    fn the_sample_has_an_answer_of_each_path() {
        let shipped = Fingerprints::shipped();
        assert!(shipped.0.len() > 400, "{}", shipped.0.len());
        assert!(!shipped.is_right("/events/20", &Value::Null));
        assert!(shipped.is_right("/events/21", &Value::Null));
    }
}
