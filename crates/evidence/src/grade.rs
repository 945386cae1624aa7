//! The learner's edit: passed or not, with the reason in a sentence.

use serde::{Deserialize, Serialize};

use crate::{chapter_file::ChapterFile, outcome::Outcome};

/// How an attempt at the exercise went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attempt {
    /// The compiler refused it.
    DoesNotCompile {
        /// What it said.
        compiler: String,
    },
    /// The server ended, or stayed silent, before it listened.
    DoesNotStart {
        /// Its last words, empty when it hung.
        words: String,
    },
    /// It was put under load beside the problem.
    Ran(Box<Trial>),
}

/// Exercise and problem in the same setting, one after the other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The learner's edit.
    pub exercise: Observed,
    /// What it is compared with.
    pub problem: Observed,
    /// Whether the servers were optimised builds.
    pub optimised: bool,
}

/// What was seen of one server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Observed {
    /// What the generator saw.
    pub outcome: Outcome,
    /// Calls that reached the database, warm-up included; `None` in a chapter without one.
    pub database_calls: Option<u64>,
    /// The reading of the chapter's mechanism.
    pub mechanism: Option<f64>,
    /// The server's panics, as it printed them.
    pub panics: Vec<String>,
    /// Whether the server ended under load.
    pub ended: bool,
    /// Time for which a quota held the run back, in seconds.
    pub throttled_s: Option<f64>,
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GradeKind {
    /// The fault is gone.
    Passed,
    /// It is not, or there is a new one.
    Failed,
    /// The run says nothing about the edit.
    Invalid,
}

/// The result of a check with its reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grade {
    /// The result.
    pub kind: GradeKind,
    /// Why, in one sentence.
    pub reason: String,
    /// Words of the compiler or the server that belong to it, several lines perhaps.
    pub detail: Option<String>,
}

/// Grades an attempt by the chapter's `[check]`.
pub fn grade(_chapter: &ChapterFile, _attempt: &Attempt) -> Grade {
    todo!("in the next commit")
}
