//! What one run of any generator yielded: the one result type that the
//! embedded generator, k6 and Locust are all read into.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What k6, and Locust with the workshop's scripts, end with when a threshold is missed.
pub const MISSED: i32 = 99;

/// Which program made the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GeneratorKind {
    /// The workshop's own.
    Embedded,
    /// Grafana k6.
    K6,
    /// Locust.
    Locust,
}

impl std::fmt::Display for GeneratorKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Embedded => "embedded",
            Self::K6 => "k6",
            Self::Locust => "Locust",
        })
    }
}

/// The generator as part of the instrument: a figure is no better than it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GeneratorFacts {
    /// Which program.
    pub name: GeneratorKind,
    /// Its version.
    pub version: String,
    /// CPU time used, as a share (0 to 1) of what it was given; `None`
    /// where it could not be measured.
    pub cpu_share: Option<f64>,
    /// Share (0 to 1) of the recorded span in which the generator was ready to run but its
    /// CPU was busy with something else; `None` where the system does not tell.
    pub waited_share: Option<f64>,
    /// Simultaneous users.
    pub users: u32,
    /// `true` when latency counts from a schedule (open loop), `false` for a closed loop.
    pub open_loop: bool,
}

impl GeneratorFacts {
    /// The share of its CPUs above which a figure describes the generator, not the server.
    pub const BOUND: f64 = 0.9;

    /// Whether the generator used over 90 % of what it was given. What it waited for its CPU
    /// it was not given: beside another program it may be at its limit with half a CPU.
    pub fn is_bound(&self) -> bool {
        let given = 1.0 - self.waited_share.unwrap_or(0.0).clamp(0.0, 1.0);
        self.cpu_share
            .is_some_and(|share| share > Self::BOUND * given)
    }
}

/// Latencies of one run, in milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Arithmetic mean.
    pub mean_ms: f64,
    /// Fastest answer.
    pub min_ms: f64,
    /// Slowest answer.
    pub max_ms: f64,
    /// Points `(quantile between 0 and 1, latency in ms)` in rising order, enough to
    /// draw the percentile plot; external generators give the few that they report.
    pub quantiles: Vec<(f64, f64)>,
}

impl Latency {
    /// The latency at `quantile` (0 to 1) in ms: the recorded point nearest above it.
    pub fn at(&self, quantile: f64) -> Option<f64> {
        self.quantiles
            .iter()
            .find(|(q, _)| *q + 1e-9 >= quantile)
            .map(|(_, ms)| *ms)
    }
}

/// One run of one generator against one server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Who measured.
    pub generator: GeneratorFacts,
    /// Recorded span in seconds (without warm-up).
    pub seconds: f64,
    /// Right answers within the recorded span.
    pub completed: u64,
    /// How many of those were to writes; their latencies are not among those below.
    #[serde(default, skip_serializing_if = "is_none")]
    pub writes: u64,
    /// Right requests per second. Within one gap between answers of `completed / seconds`: the
    /// embedded generator measures from the last answer before the span to the last within it,
    /// so that 20 requests per second read as 20 in a span that holds 29 or 30.
    pub requests_per_second: f64,
    /// Failed requests (warm-up included) by cause: `connect: connection refused`, `time_out`, `closed before an answer`, `status 500`, …
    pub errors: BTreeMap<String, u64>,
    /// Answers with a wrong body, warm-up included.
    pub wrong_answers: u64,
    /// The first wrong body, shortened, for the message.
    pub first_wrong_answer: Option<String>,
    /// Requests that had no answer yet when the load ended (neither right nor failed). Their
    /// latencies are unknown and missing below: many of them mean that `latency` is too kind.
    #[serde(default)]
    pub unfinished: u64,
    /// Right answers with those before and after the recorded span; `None` of other generators, and
    /// in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_all: Option<InAll>,
    /// Latencies of the right answers; in an open loop from the scheduled moment.
    pub latency: Latency,
    /// Open loop only: the same answers timed from the moment each request was really sent, as a
    /// generator that ignores coordinated omission would report them.
    pub service_latency: Option<Latency>,
    /// Right answers in each second of the recorded span.
    pub per_second: Vec<u64>,
    /// What k6 or Locust ended with: 0, or [`MISSED`] for a threshold of its script. The embedded
    /// generator has no script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// What the load's bystander saw, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bystander: Option<BystanderOutcome>,
}

/// Right answers of a whole run, warm-up included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InAll {
    /// To reads.
    pub reads: u64,
    /// To writes.
    pub writes: u64,
}

/// What was seen of the requests beside the load, paced in an open loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BystanderOutcome {
    /// Right answers within the recorded span.
    pub completed: u64,
    /// Failed requests by cause, as in [`Outcome::errors`].
    pub errors: BTreeMap<String, u64>,
    /// Answers with a wrong body.
    pub wrong_answers: u64,
    /// Requests that were due and had no answer yet when the load ended.
    pub unfinished: u64,
    /// Latencies from the scheduled moment.
    pub latency: Latency,
    /// The same answers timed from the moment each request was really sent.
    pub service_latency: Latency,
}

// serde hands a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_none(count: &u64) -> bool {
    *count == 0
}

impl Outcome {
    /// Failed requests of every cause.
    pub fn error_count(&self) -> u64 {
        self.errors.values().sum()
    }
}

/// Whether `rate`, in requests per second, can be that of `count` answers in `span` seconds.
pub fn belongs_to(rate: f64, count: f64, span: f64) -> bool {
    (rate * span - count).abs() <= 2.0 + 0.1 * count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_bound(cpu_share: Option<f64>, waited_share: Option<f64>) -> bool {
        GeneratorFacts {
            name: GeneratorKind::Locust,
            version: String::new(),
            cpu_share,
            waited_share,
            users: 1,
            open_loop: false,
        }
        .is_bound()
    }

    #[test]
    fn a_generator_is_bound_by_what_it_was_given() {
        assert!(is_bound(Some(0.95), None));
        assert!(!is_bound(Some(0.75), None));
        assert!(!is_bound(Some(0.75), Some(0.02)));
        // Something else had the other quarter.
        assert!(is_bound(Some(0.75), Some(0.24)));
        assert!(!is_bound(None, Some(0.24)));
    }
}
