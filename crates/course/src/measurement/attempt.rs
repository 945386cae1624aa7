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
        /// The wait for it, as a sign of a busy machine.
        wait: Wait,
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
#[derive(Debug, Clone, PartialEq)]
pub struct Tested {
    /// Assertion in words.
    pub name: String,
    /// `true` if only a fix can keep it. Such tests run last: the check's load is the better evidence of the
    /// fault.
    pub of_a_fix: bool,
    /// Failure; `None` if it passed.
    pub failure: Option<Failure>,
}

/// Use of the machine while something did not come in time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Wait {
    /// Share (0 to 1) of the machine's CPU time that other programs used. `None` where the system does not report it.
    pub elsewhere_share: Option<f64>,
    /// `true` if the server was idle, and so waited for something else than a CPU.
    pub is_idle: bool,
}

/// Returns whether this status is the one of a service that gives up a request which takes too long. A busy machine can
/// make it do so.
pub fn is_given_up(status: &str) -> bool {
    matches!(status, "502" | "503" | "504")
}

/// Failure of a contract test.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// Sentence on the observation, its meaning and the remedy: one line, without a full stop.
    pub sentence: String,
    /// First panic of the server during the test, as the server printed it.
    pub panic: Option<String>,
    /// Use of the machine, if the failure is an answer that did not come in time; `None` if no machine can be its cause.
    pub wait: Option<Wait>,
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
    /// `true` if requests of the load went without an answer, and so did a single one afterwards, while the server was
    /// idle.
    pub is_stuck: bool,
}
