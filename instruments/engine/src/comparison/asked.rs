//! Settings and results of a comparison.

use std::path::PathBuf;
use std::time::Duration;

use children::Interrupt;
use children::tool::DriverError;
use serde::Serialize;
use statistics::figures;
use statistics::metric::{Metric, Triplet};
use statistics::profile::SeenByBoth;
use statistics::verdict::{Goal, Speed, Verdict};

use crate::load::{GeneratorError, Protocol, Target, TrafficOutcome};
use crate::traffic::Traffic;

use crate::answers::{AnswerError, How};
use crate::event::Event;
use crate::login::Login;
use crate::placement::Placement;
use crate::service::CommandError;

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

/// Test that returns `true` if rounds say enough.
pub type Enough<'a> = dyn Fn(&[Triplet]) -> bool + 'a;

/// Builds of both sides for one round each, in the same places as before.
pub struct Builds<'a> {
    /// Number of rounds that have a build.
    pub rounds: u32,
    /// Makes those of a round, counted from 0.
    pub make: &'a dyn Fn(u32) -> Result<(), ComparisonError>,
}

/// Settings of a comparison.
pub struct Comparison<'a> {
    /// The base.
    pub base: Side,
    /// The change.
    pub change: Side,
    /// Builds for each round, which then differ in the layout of the code; `None` if both sides stay as they are.
    pub builds: Option<Builds<'a>>,
    /// Path that answers once a server is ready.
    pub ready: Option<&'a str>,
    /// Longest time until a server is ready.
    pub ready_within: Duration,
    /// Protocol of the services that the commands start.
    pub protocol: &'a Protocol,
    /// The load. The expected answers to its requests are learned.
    pub traffic: Traffic,
    /// First request to every server, if any.
    pub login: Option<&'a Login>,
    /// Conditions that make an answer right.
    pub how: How,
    /// Names of the counters that both must have.
    pub counters: &'a [String],
    /// Path of the page with these and all other counters; empty if none are wanted.
    pub metrics_path: &'a str,
    /// `true` if that page is on the second port.
    pub is_metrics_on_admin: bool,
    /// `true` if both are profiled afterwards, under the same load.
    pub with_profiles: bool,
    /// The metric that decides.
    pub deciding: &'a Metric,
    /// Goal of the change.
    pub goal: Goal,
    /// Test that ends the run in place of a verdict, once it returns `true` for the rounds so far. There are three at
    /// least.
    pub enough: Option<&'a Enough<'a>>,
    /// Time after which no round begins.
    pub at_most: Duration,
    /// CPUs of servers and generator.
    pub placement: &'a Placement,
    /// Another generator than the embedded one.
    pub generator: Option<&'a Generator<'a>>,
    /// Ctrl-C.
    pub interrupt: &'a Interrupt,
    /// Observer of events, for the terminal.
    pub observer: &'a dyn Fn(Event<'_>),
}

/// Result of a comparison.
#[derive(Debug, Clone)]
pub struct Compared {
    /// The verdict.
    pub verdict: Verdict<Speed>,
    /// The rounds that it rests on.
    pub rounds: Vec<Triplet>,
    /// Number of rounds that did not count.
    pub left_out: LeftOut,
    /// Sentences that a reader must know beside the verdict.
    pub notes: Vec<String>,
    /// Profiles by the instruments that both have; empty unless they were asked for.
    pub profiles: Vec<SeenByBoth>,
    /// Time that the comparison took, in seconds.
    pub seconds: f64,
    /// Recorded time of a slice, in seconds.
    pub slice_s: f64,
    /// Largest share of its CPU time that the generator used in a slice.
    pub generator_cpu: Option<f64>,
}

/// Rounds that were not counted, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Rounds in which other programs used the servers' CPUs.
    pub busy: u32,
    /// Rounds in which the generator was the limit.
    pub generator_bound: u32,
    /// Rounds in which a slice had no answer.
    pub silent: u32,
}

impl LeftOut {
    /// Returns one sentence about the rounds that did not count, if there are any. `counted` is the number of the
    /// others.
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
        if left_out == 0 {
            return None;
        }
        let all = figures::things(u64::from(left_out) + counted as u64, "round");
        Some(format!(
            "Of {all}, {left_out} did not count: {}.",
            reasons.join(", ")
        ))
    }
}

/// Reason why nothing was compared.
#[derive(Debug, thiserror::Error)]
pub enum ComparisonError {
    /// A server failed.
    #[error(transparent)]
    Server(#[from] CommandError),
    /// Requests are not answered as they must be.
    #[error(transparent)]
    Answer(#[from] AnswerError),
    /// The generator failed.
    #[error(transparent)]
    Generator(#[from] GeneratorError),
    /// Another generator failed.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// No endpoint answers where the profiles are asked for.
    #[error(
        "both services need the endpoints of debug-endpoints, without a token, on their port or on \
         `{{admin_port}}`."
    )]
    NoEndpoints,
    /// A server lacks a counter.
    #[error("{0}")]
    NoCounter(String),
    /// The load ran, and something was wrong that makes every figure meaningless.
    #[error("{0}")]
    Invalid(String),
}

impl ComparisonError {
    /// Returns whether Ctrl-C ended the comparison.
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
