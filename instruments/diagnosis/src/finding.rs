//! Findings: faults that hold requests up, or will.

use serde::Serialize;

use crate::evidence::View;

/// A fault that holds requests up or will, or a wait that takes most of the time.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// The rule, or the kind of the wait, for programs: `blocked_worker`, `descriptors`, `lock`.
    pub kind: &'static str,
    /// Kind of finding: a fault, a limit or a wait.
    pub level: Level,
    /// Headline, evidence, cause and fix in one paragraph.
    pub says: String,
    /// Fault and its place.
    pub headline: String,
    /// The evidence.
    pub seen: String,
    /// The usual cause.
    pub cause: String,
    /// Remedy.
    pub fix: String,
    /// Path of the debug endpoint that shows it, such as `/debug/await`.
    pub see: &'static str,
    /// Rank among findings: the larger it is, the likelier requests wait for this ([`thresholds`](crate::thresholds)).
    pub weight: f64,
    /// Places that it is about: lines of the service's code, or frames without one.
    #[serde(skip)]
    pub(crate) places: Vec<String>,
}

/// Kind of a finding, the surest fault first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// A fault, which is the cause of waits.
    Fault,
    /// A limit or a full queue: a fault if it is too small, and not one if it is deliberate.
    Bound,
    /// A wait in this service or its database that takes most of the time; its cause was not seen.
    Wait,
    /// A fact about its clients, which is no fault of this service.
    Note,
}

/// The words of a finding, in the order in which they are printed. Empty ones are left out.
#[derive(Clone, Debug, Default)]
pub struct Words {
    /// Fault and its place: a sentence of at most twenty words, not counting places.
    pub headline: String,
    /// The evidence, as sentences.
    pub seen: String,
    /// The usual cause, as sentences.
    pub cause: String,
    /// Remedy, as sentences.
    pub fix: String,
}

impl Finding {
    /// Makes a finding of a fault.
    pub fn fault(kind: &'static str, weight: f64, see: &'static str, words: Words) -> Self {
        Self::of(Level::Fault, kind, weight, see, words)
    }

    /// Makes a finding of any level.
    pub fn of(
        level: Level,
        kind: &'static str,
        weight: f64,
        see: &'static str,
        words: Words,
    ) -> Self {
        let mut says = words.headline.clone();
        for (label, text) in words.labelled() {
            says = format!("{says} {label}: {text}");
        }
        Self {
            kind,
            level,
            says,
            headline: words.headline,
            seen: words.seen,
            cause: words.cause,
            fix: words.fix,
            see,
            weight,
            places: Vec::new(),
        }
    }

    /// Adds a place that it is about.
    pub(crate) fn at(mut self, place: impl Into<String>) -> Self {
        self.places.push(place.into());
        self
    }

    /// Returns whether both are about one place.
    pub(crate) fn shares_place(&self, other: &Self) -> bool {
        self.places.iter().any(|place| other.places.contains(place))
    }

    /// Returns the finding in lines; the first says what is wrong and where. With [`View::Inside`], the evidence names the
    /// endpoint that shows it.
    pub fn lines(&self, view: View) -> String {
        let words = Words {
            headline: String::new(),
            seen: self.seen.clone(),
            cause: self.cause.clone(),
            fix: self.fix.clone(),
        };
        let mut lines = self.headline.clone();
        let mut see = match view {
            View::Inside => format!(" [{}]", self.see),
            View::Outside => String::new(),
        };
        for (label, text) in words.labelled() {
            // The endpoint stands with the evidence.
            let endpoint = std::mem::take(&mut see);
            lines = format!("{lines}\n   {label}: {text}{endpoint}");
        }
        lines + &see
    }
}

impl Words {
    fn labelled(&self) -> Vec<(&'static str, &str)> {
        let mut labelled = Vec::new();
        for (label, text) in [
            ("Seen", &self.seen),
            ("Usual cause", &self.cause),
            ("Fix", &self.fix),
        ] {
            if !text.is_empty() {
                labelled.push((label, text.as_str()));
            }
        }
        labelled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_told_in_lines_and_in_one() {
        let words = Words {
            headline: "Requests wait for a lock at read (shop.rs:7).".to_owned(),
            seen: "5 of 6 are there at once.".to_owned(),
            fix: "Drop the guard first.".to_owned(),
            ..Words::default()
        };
        let finding = Finding::fault("lock", 1.0, "/debug/await", words);
        assert_eq!(
            finding.lines(View::Inside),
            "Requests wait for a lock at read (shop.rs:7).\n   Seen: 5 of 6 are there at once. [/debug/await]\n   \
             Fix: Drop the guard first."
        );
        assert!(
            finding
                .says
                .ends_with("at once. Fix: Drop the guard first.")
        );
    }
}
