//! What a comparison is asked, and what it answers.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use crate::figures;
use crate::load::interrupt::Interrupt;
use crate::load::{GeneratorError, Protocol, Target, TrafficOutcome};
use crate::metric::{Metric, Round, SeenByBoth};
use crate::traffic::Traffic;
use crate::verdict::{Goal, Verdict};

use crate::answers::{AnswerError, How};
use crate::event::Event;
use crate::login::Login;
use crate::placement::Placement;
use crate::service::CommandError;
use crate::tool::DriverError;

/// One of the two builds.
#[derive(Debug, Clone)]
pub enum Side {
    /// A command, and the folder it runs in.
    Command(String, PathBuf),
    /// A server that runs already. It is not restarted, and runs where it likes.
    Running(Target),
}

/// Puts a load on a server, as [`crate::load::run`] does.
pub type Generator<'a> = dyn Fn(&Target, &Traffic) -> Result<TrafficOutcome, DriverError> + 'a;

/// `true` if rounds say enough.
pub type Enough<'a> = dyn Fn(&[Round]) -> bool + 'a;

/// What is compared, and how.
pub struct Comparison<'a> {
    /// The base.
    pub base: Side,
    /// The change.
    pub change: Side,
    /// Path that answers once a server is ready.
    pub ready: Option<&'a str>,
    /// How long that may take.
    pub ready_within: Duration,
    /// What services speak that the commands start.
    pub protocol: &'a Protocol,
    /// The load. What is expected of its requests is learnt.
    pub traffic: Traffic,
    /// What every server is asked first, if anything.
    pub login: Option<&'a Login>,
    /// What makes the answers right.
    pub how: How,
    /// Counters that both have to have.
    pub counters: &'a [String],
    /// The path that has them, and all others; empty if none are wanted.
    pub metrics_path: &'a str,
    /// `true` if that is on the second port.
    pub is_metrics_on_admin: bool,
    /// `true` if both are profiled afterwards, under the same load.
    pub with_profiles: bool,
    /// The metric that decides.
    pub deciding: &'a Metric,
    /// What is asked of the change.
    pub goal: Goal,
    /// Instead of a verdict, this ends it: whether these rounds, three at least, say enough.
    pub enough: Option<&'a Enough<'a>>,
    /// No round begins after so long.
    pub at_most: Duration,
    /// Who runs where.
    pub placement: &'a Placement,
    /// Another generator than the embedded one.
    pub generator: Option<&'a Generator<'a>>,
    /// Ctrl-C.
    pub interrupt: &'a Interrupt,
    /// Told what happens, for the terminal.
    pub observer: &'a dyn Fn(Event<'_>),
}

/// What came of it.
#[derive(Debug, Clone)]
pub struct Compared {
    /// The verdict.
    pub verdict: Verdict,
    /// The rounds that it rests on.
    pub rounds: Vec<Round>,
    /// The others.
    pub left_out: LeftOut,
    /// What a reader must know beside, a sentence each.
    pub notes: Vec<String>,
    /// What the instruments saw that both have; none unless it was asked for.
    pub profiles: Vec<SeenByBoth>,
    /// Seconds that it took.
    pub seconds: f64,
    /// Seconds that a slice recorded.
    pub slice_s: f64,
    /// Largest share of its CPU time that the generator used in a slice.
    pub generator_cpu: Option<f64>,
}

/// Rounds that were not counted, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Other programs used the servers' CPUs.
    pub busy: u32,
    /// The generator was the limit.
    pub generator_bound: u32,
    /// A slice had no answer.
    pub silent: u32,
}

impl LeftOut {
    /// Returns one sentence about them, if there are any, beside so many that were counted.
    pub fn in_words(self, counted: usize) -> Option<String> {
        let mut reasons = Vec::new();
        for (rounds, reason) in [
            (self.busy, "other programs used the CPU"),
            (self.generator_bound, "the generator was the limit"),
            (self.silent, "a slice had no answer"),
        ] {
            if rounds > 0 {
                reasons.push(format!("{rounds} because {reason}"));
            }
        }
        let left_out = self.busy + self.generator_bound + self.silent;
        let all = figures::things(u64::from(left_out) + counted as u64, "round");
        (left_out > 0).then(|| {
            format!(
                "Of {all}, {left_out} did not count: {}.",
                reasons.join(", ")
            )
        })
    }
}

/// Why nothing was compared.
#[derive(Debug, thiserror::Error)]
pub enum ComparisonError {
    /// A server failed.
    #[error(transparent)]
    Server(#[from] CommandError),
    /// The requests are not answered as they must be.
    #[error(transparent)]
    Answer(#[from] AnswerError),
    /// The generator failed.
    #[error(transparent)]
    Generator(#[from] GeneratorError),
    /// Another generator failed.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// Nobody answers where the profiles are asked for.
    #[error(
        "both services need the endpoints of debug-endpoints, without a token, on their port or on \
         `{{admin_port}}`."
    )]
    NoEndpoints,
    /// A counter that a server lacks.
    #[error("{0}")]
    NoCounter(String),
    /// Load was put on, and something was wrong that makes every figure meaningless.
    #[error("{0}")]
    Invalid(String),
}

impl ComparisonError {
    /// Returns whether it was Ctrl-C.
    pub fn is_interrupt(&self) -> bool {
        matches!(
            self,
            Self::Server(CommandError::Interrupted)
                | Self::Answer(AnswerError::Interrupted)
                | Self::Generator(GeneratorError::Interrupted)
                | Self::Driver(DriverError::Interrupted)
        )
    }
}
