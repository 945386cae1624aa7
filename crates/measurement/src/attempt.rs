//! What was seen of an attempt at the exercise.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::outcome::Outcome;

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
    /// Calls that an answer cannot do without, warm-up included: to the database, or what else the
    /// chapter's `[check]` names; `None` in a chapter without such.
    #[serde(alias = "database_calls")]
    pub calls: Option<u64>,
    /// Changes that reached the database, warm-up included; `None` in a chapter without one.
    #[serde(default)]
    pub database_records: Option<u64>,
    /// The answer to the chapter's question after the load, where it has one.
    #[serde(default)]
    pub afterwards: Option<String>,
    /// The reading of the chapter's mechanism.
    pub mechanism: Option<f64>,
    /// The readings of the check's other limits, by metric.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limited: BTreeMap<String, f64>,
    /// The server's panics, as it printed them.
    pub panics: Vec<String>,
    /// Whether the server ended under load.
    pub ended: bool,
    /// Time for which a quota held the run back, in seconds.
    pub throttled_s: Option<f64>,
}
