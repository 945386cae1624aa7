//! One line of the doctor.

use serde::Serialize;

#[derive(Debug, Serialize)]
pub(super) struct Finding {
    pub(super) name: &'static str,
    pub(super) state: State,
    pub(super) found: String,
    /// What to do about it; empty when nothing need be done.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) remedy: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    Ok,
    /// Figures or comfort suffer.
    Note,
    /// A command does without, or cannot be run.
    Missing,
    /// Nothing works without.
    Required,
}

impl Finding {
    pub(super) fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self::new(name, State::Ok, found, "")
    }

    pub(super) fn note(
        name: &'static str,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self::new(name, State::Note, found, remedy)
    }

    pub(super) fn missing(name: &'static str, remedy: impl Into<String>) -> Self {
        Self::new(name, State::Missing, "not there", remedy)
    }

    pub(super) fn new(
        name: &'static str,
        state: State,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            name,
            state,
            found: found.into(),
            remedy: remedy.into(),
        }
    }
}
