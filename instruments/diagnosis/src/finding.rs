//! Findings: faults that hold requests up, or will.

use serde::Serialize;

use crate::evidence::{Frame, View};
use crate::followed::is_same;

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
    /// The usual cause, as a sentence.
    pub cause: String,
    /// Remedy, as a sentence.
    pub fix: String,
    /// Path of the debug endpoint that shows it, such as `/debug/await`.
    pub see: &'static str,
    /// Rank among findings: the larger it is, the likelier requests wait for this (the table of the rules has it).
    pub weight: f64,
    /// Places that it is about: lines of the service's code, or frames without one.
    #[serde(skip)]
    pub(crate) places: Vec<Frame>,
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

/// A row of the table of findings: all that is said of a finding but what was seen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// The rule, or the kind of the wait, for programs.
    pub(crate) kind: &'static str,
    pub(crate) level: Level,
    /// Rank among findings, without the share of the time that some of them add.
    pub(crate) weight: f64,
    /// Path of the debug endpoint that shows it.
    pub(crate) see: &'static str,
    /// The cause, as a sentence. Empty if the table of waits or of work has it.
    pub(crate) cause: &'static str,
    /// Remedy, as a sentence. Empty if the table of waits or of work has it.
    pub(crate) fix: &'static str,
}

/// Cause and remedy, as sentences.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Advice {
    pub(crate) cause: &'static str,
    pub(crate) fix: &'static str,
}

/// An observation of a rule: typed facts, which become words only in the report.
pub(crate) trait Sighting {
    /// Returns its row of the table.
    fn row(&self) -> &'static Row;

    /// Returns the name for programs, if the row is of several kinds of waits.
    fn kind(&self) -> &'static str {
        self.row().kind
    }

    /// Returns cause and remedy, if a table of `ecosystem.md` has them for what was seen.
    fn advice(&self) -> Option<Advice> {
        None
    }

    /// Returns what is added to the weight of the row: a share of the time.
    fn share(&self) -> f64 {
        0.0
    }

    /// Returns the places that it is about: lines of the service's code, or frames without one.
    fn places(&self) -> Vec<Frame> {
        Vec::new()
    }

    /// Returns fault and place: a sentence of at most twenty words, not counting places.
    fn headline(&self) -> String;

    /// Returns the evidence, as sentences.
    fn seen(&self) -> String;
}

impl Finding {
    /// Makes the finding of a sighting.
    pub(crate) fn of(sighting: &dyn Sighting) -> Self {
        let row = sighting.row();
        let advice = sighting.advice().unwrap_or(Advice {
            cause: row.cause,
            fix: row.fix,
        });
        let mut finding = Self {
            kind: sighting.kind(),
            level: row.level,
            says: String::new(),
            headline: sighting.headline(),
            seen: sighting.seen(),
            cause: advice.cause.to_owned(),
            fix: advice.fix.to_owned(),
            see: row.see,
            weight: row.weight + sighting.share(),
            places: sighting.places(),
        };
        finding.says.clone_from(&finding.headline);
        for (label, text) in finding.labelled() {
            finding.says = format!("{} {label}: {text}", finding.says);
        }
        finding
    }

    /// Returns whether both are about one place.
    pub(crate) fn shares_place(&self, other: &Self) -> bool {
        let mut places = self.places.iter();
        places.any(|place| other.places.iter().any(|other| is_same_place(place, other)))
    }

    /// Returns the finding in lines; the first says what is wrong and where. With [`View::Inside`], the evidence names the
    /// endpoint that shows it.
    pub fn lines(&self, view: View) -> String {
        let mut lines = self.headline.clone();
        let mut see = match view {
            View::Inside => format!(" [{}]", self.see),
            View::Outside => String::new(),
        };
        for (label, text) in self.labelled() {
            // The endpoint stands with the evidence.
            let endpoint = std::mem::take(&mut see);
            lines = format!("{lines}\n   {label}: {text}{endpoint}");
        }
        lines + &see
    }

    /// Returns the texts after the headline, with their labels. Empty ones are left out.
    fn labelled(&self) -> Vec<(&'static str, String)> {
        let mut labelled = Vec::new();
        for (label, text) in [
            ("Seen", &self.seen),
            ("Usual cause", &self.cause),
            ("Fix", &self.fix),
        ] {
            if !text.is_empty() {
                labelled.push((label, text.clone()));
            }
        }
        labelled
    }
}

/// Returns whether two instruments name one place: they shorten paths in different ways.
fn is_same_place(one: &Frame, other: &Frame) -> bool {
    match (one.line(), other.line()) {
        (Some(one), Some(other)) => is_same(one, other),
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Queue;

    impl Sighting for Queue {
        fn row(&self) -> &'static Row {
            &Row {
                kind: "lock",
                level: Level::Fault,
                weight: 1.0,
                see: "/debug/await",
                cause: "",
                fix: "Drop the guard first.",
            }
        }

        fn headline(&self) -> String {
            "Requests wait for a lock at read (shop.rs:7).".to_owned()
        }

        fn seen(&self) -> String {
            "5 of 6 are there at once.".to_owned()
        }
    }

    #[test]
    fn a_finding_is_told_in_lines_and_in_one() {
        let finding = Finding::of(&Queue);
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
