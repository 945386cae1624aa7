//! Comparison of bodies with the right one, where not every byte must be the same.

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde_json::Value;

use crate::traffic::{Expected, Part, Rule};

/// The right body, to compare many others with.
#[derive(Debug)]
pub(crate) struct Right {
    body: Vec<u8>,
    rule: Rule,
    /// Compared values, if the body is compared as JSON.
    json: Option<Value>,
    /// Another body that was right. Most answers equal the one before, and then need not be parsed as JSON.
    last: RefCell<Option<Vec<u8>>>,
}

impl Right {
    /// Returns the right body to compare with; `None` if any body will do.
    pub(crate) fn of(expected: &Expected) -> Option<Self> {
        let body = expected.body.clone()?;
        Some(Self {
            json: json(&body, &expected.rule),
            body,
            rule: expected.rule.clone(),
            last: RefCell::default(),
        })
    }

    /// Returns whether `body` is right, too.
    pub(crate) fn is(&self, body: &[u8]) -> bool {
        if body == self.body {
            return true;
        }
        let Some(expected) = &self.json else {
            return match self.rule.part {
                Part::Body => false,
                Part::Size => body.len() == self.body.len(),
                Part::Status => true,
            };
        };
        if self.last.borrow().as_deref() == Some(body) {
            return true;
        }
        let is_right = json(body, &self.rule).as_ref() == Some(expected);
        if is_right {
            self.last.replace(Some(body.to_vec()));
        }
        is_right
    }

    /// Returns pointers to the places where `body` differs; `None` if one of the two is not JSON.
    pub(crate) fn differing(&self, body: &[u8]) -> Option<BTreeSet<String>> {
        let as_json = Rule {
            json: Some(self.rule.json.clone().unwrap_or_default()),
            ..Rule::default()
        };
        let mut found = BTreeSet::new();
        let (one, other) = (json(&self.body, &as_json)?, json(body, &as_json)?);
        differing(&one, &other, "", &mut found);
        Some(found)
    }
}

/// Returns the values of this JSON that are compared; `None` if it is not JSON, or if bytes are compared.
fn json(body: &[u8], rule: &Rule) -> Option<Value> {
    let ignored = rule.json.as_ref()?;
    let mut json = serde_json::from_slice(body).ok()?;
    for pointer in &**ignored {
        ignore(&mut json, &names(pointer));
    }
    Some(json)
}

/// Returns the names that a JSON pointer consists of.
pub fn names(pointer: &str) -> Vec<String> {
    let names = pointer.split('/').skip(1);
    names
        .map(|name| name.replace("~1", "/").replace("~0", "~"))
        .collect()
}

/// Removes the value that `names` lead to. An element of an array leaves its place.
fn ignore(json: &mut Value, names: &[String]) {
    let Some((name, further)) = names.split_first() else {
        *json = Value::Null;
        return;
    };
    match json {
        Value::Object(map) if further.is_empty() => map.retain(|key, _| !is_meant(name, key)),
        Value::Object(map) => {
            for (key, value) in map {
                if is_meant(name, key) {
                    ignore(value, further);
                }
            }
        }
        Value::Array(all) => {
            for (index, value) in all.iter_mut().enumerate() {
                if is_meant(name, &index.to_string()) {
                    ignore(value, further);
                }
            }
        }
        _ => {}
    }
}

/// Returns whether a name in a pointer means this key or index.
fn is_meant(name: &str, key: &str) -> bool {
    name == "*" || name == key
}

fn differing(one: &Value, other: &Value, at: &str, found: &mut BTreeSet<String>) {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for key in keys {
                let at = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
                match (one.get(key), other.get(key)) {
                    (Some(one), Some(other)) => differing(one, other, &at, found),
                    _ => drop(found.insert(at)),
                }
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let at = format!("{at}/*");
            for (one, other) in one.iter().zip(other) {
                differing(one, other, &at, found);
            }
        }
        _ if one == other => {}
        _ => drop(found.insert(at.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str =
        r#"{"id": 7, "at": "10:00", "items": [{"n": 1, "a/b": 2}, {"n": 2, "a/b": 2}]}"#;

    fn right(part: Part, ignored: Option<&[&str]>) -> Right {
        let ignored = ignored.map(|all| all.iter().map(|one| (*one).to_owned()).collect());
        let rule = Rule {
            part,
            json: ignored,
        };
        let expected = Expected {
            rule,
            ..Expected::of(200, Some(BODY.into()))
        };
        Right::of(&expected).expect("a body")
    }

    fn is(right: &Right, from: &str, to: &str) -> bool {
        right.is(BODY.replace(from, to).as_bytes())
    }

    #[test]
    fn bytes_size_or_nothing_is_compared() {
        for (part, same_size, other_size) in [
            (Part::Body, false, false),
            (Part::Size, true, false),
            (Part::Status, true, true),
        ] {
            let right = right(part, None);
            assert!(is(&right, "", ""));
            assert_eq!(is(&right, "10:00", "11:00"), same_size, "{part:?}");
            assert_eq!(is(&right, "10:00", "9:00"), other_size, "{part:?}");
            assert!(!right.is(b"") || part == Part::Status);
        }
    }

    #[test]
    fn json_is_compared_without_what_is_ignored_in_any_order() {
        let all = right(Part::Body, Some(&[]));
        assert!(is(
            &all,
            r#""id": 7, "at": "10:00""#,
            r#""at":"10:00","id":7"#
        ));
        assert!(!is(&all, "10:00", "11:00") && !is(&all, "7", "7.5") && !all.is(b"no JSON"));
        let most = right(Part::Body, Some(&["/at", "/items/*/a~1b", "/none/0"]));
        for _ in 0..2 {
            assert!(is(&most, "10:00", "11:00") && is(&most, r#""a/b": 2"#, r#""a/b": 3"#));
            assert!(is(&most, r#""at": "10:00", "#, ""));
            assert!(!is(&most, r#""n": 2"#, r#""n": 3"#) && !is(&most, r#""id": 7"#, r#""id": 8"#));
        }
        let first = right(Part::Body, Some(&["/items/0"]));
        assert!(is(&first, r#""n": 1"#, r#""n": 5"#) && !is(&first, r#""n": 2"#, r#""n": 5"#));
        // A body that is not JSON is compared by the rest of the rule.
        assert!(!right(Part::Body, Some(&[])).is(b"{"));
    }

    #[test]
    fn where_bodies_differ_is_a_list_of_pointers() {
        let changed = BODY
            .replace("10:00", "11:00")
            .replace(r#""a/b": 2"#, r#""a/b": 3"#);
        let found = |right: Right, body: &str| {
            right
                .differing(body.as_bytes())
                .map(|found| found.into_iter().collect::<Vec<_>>())
        };
        let pointers = ["/at", "/items/*/a~1b"].map(str::to_owned);
        assert_eq!(
            found(right(Part::Body, None), &changed),
            Some(pointers.to_vec())
        );
        // These are the ones to ignore.
        assert!(right(Part::Body, Some(&["/at", "/items/*/a~1b"])).is(changed.as_bytes()));
        assert_eq!(
            found(right(Part::Body, Some(&["/at"])), &changed),
            Some(pointers[1..].to_vec())
        );
        assert_eq!(
            found(right(Part::Body, None), "7"),
            Some(vec![String::new()])
        );
        assert_eq!(found(right(Part::Body, None), "none"), None);
    }
}
