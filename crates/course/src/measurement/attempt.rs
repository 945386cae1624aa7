//! An attempt at the exercise, as data.

use crate::measurement::record::Round;

/// Course of an attempt at the exercise, which compiles.
#[derive(Debug, Clone, PartialEq)]
pub enum Attempt {
    /// The server ended before it listened.
    EndsAtOnce {
        /// Its exit status, as the system reports it.
        status: String,
        /// The end of its stderr.
        stderr: String,
    },
    /// The server ran, and did not come to listen.
    DoesNotListen {
        /// The end of what it printed.
        said: String,
    },
    /// The contract tests ran. It is not put under load if one failed.
    Tested {
        /// All tests that ran, failed ones among them.
        tests: Vec<Tested>,
    },
    /// It was put under load beside the problem.
    Ran(Box<Trial>),
}

impl Attempt {
    /// Adds the results of contract tests.
    #[must_use]
    pub fn tested(mut self, results: Vec<Tested>) -> Self {
        match &mut self {
            Self::Tested { tests } => tests.extend(results),
            Self::Ran(trial) => trial.tests.extend(results),
            Self::EndsAtOnce { .. } | Self::DoesNotListen { .. } => {}
        }
        self
    }
}

/// A contract test that was run on the exercise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tested {
    /// Assertion in words.
    pub name: String,
    /// `true` if only a fix can keep it. Such tests run last: the check's load is the better evidence of the
    /// fault.
    pub of_a_fix: bool,
    /// Failure; `None` if it passed.
    pub failure: Option<Failure>,
}

/// Failure of a contract test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Sentence on the observation, its meaning and the remedy: one line, without a full stop.
    pub sentence: String,
    /// First panic of the server during the test, as the server printed it.
    pub panic: Option<String>,
}

/// Exercise and problem in the same scenario, one after the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// The contract tests; those of every variant passed.
    pub tests: Vec<Tested>,
    /// The learner's edit.
    pub exercise: Observed,
    /// The problem beside it.
    pub problem: Observed,
    /// Rounds of the exercise for root causes that are counted in rounds of their own.
    pub counted: Vec<Round>,
    /// `true` if the servers were optimised builds.
    pub optimised: bool,
}

/// Observations of one server.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// Counts of generator and server.
    pub round: Round,
    /// The server's panics, as it printed them.
    pub panics: Vec<String>,
    /// Known reason for which the server ended under load, as words that follow "ended". Empty if the reason
    /// is unknown; `None` if the server did not end.
    pub ended: Option<String>,
}
