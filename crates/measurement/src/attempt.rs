//! What was seen of an attempt at the exercise.

use crate::contract::Tried;
use crate::record::Round;

/// How an attempt at the exercise went.
#[derive(Debug, Clone, PartialEq)]
pub enum Attempt {
    /// The compiler refused it.
    DoesNotCompile {
        /// What it said.
        compiler: String,
    },
    /// The server ended, or stayed silent, before it listened.
    DoesNotStart {
        /// The end of its stderr, empty when it hung.
        stderr: String,
    },
    /// It broke a promise of the contract, so that it was not put under load.
    BreaksContract {
        /// All promises that were tried, broken ones among them.
        tried: Vec<Tried>,
    },
    /// It was put under load beside the problem.
    Ran(Box<Trial>),
}

/// Exercise and problem in the same scenario, one after the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// The promises of the contract, all kept.
    pub tried: Vec<Tried>,
    /// The learner's edit.
    pub exercise: Observed,
    /// What it is compared with.
    pub problem: Observed,
    /// The exercise's rounds in which root causes are counted that have rounds of their own.
    pub counted: Vec<Round>,
    /// CPU time in ms that the work for an answer takes at least, as measured beside it; `None` in a chapter
    /// whose work nobody can do by himself.
    pub work_ms: Option<f64>,
    /// Whether the servers were optimised builds.
    pub optimised: bool,
}

/// What was seen of one server.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// What generator and server counted.
    pub round: Round,
    /// Calls that an answer cannot do without, warm-up included: to the database, or what else the
    /// chapter's `[check]` names; `None` in a chapter without such.
    pub calls: Option<u64>,
    /// Changes that reached the database, warm-up included; `None` in a chapter without one.
    pub database_records: Option<u64>,
    /// The server's panics, as it printed them.
    pub panics: Vec<String>,
    /// What is known of the reason, as words that go on after "ended", if the server ended under
    /// load; empty if nothing is.
    pub ended: Option<String>,
}
