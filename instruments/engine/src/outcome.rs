//! Result of one run of any generator: the one type that the embedded generator, k6 and Locust are all read into.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use statistics::figures;
use statistics::metric::Quantile;

use crate::traffic::Spacing;

/// Exit code of k6, and of Locust with the workshop's scripts, when a threshold is missed.
pub const MISSED: i32 = 99;

/// Program that made the load.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum GeneratorKind {
    /// The workshop's own.
    #[default]
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

/// Description of the generator, and the CPU time that it had.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GeneratorFacts {
    /// Name of the program.
    pub name: GeneratorKind,
    /// Its version.
    pub version: String,
    /// CPU time used, as a share (0 to 1) of the CPU time that it could have; `None` if it could not be measured.
    pub cpu_share: Option<f64>,
    /// Share (0 to 1) of the recorded span in which the generator was ready to run but its
    /// CPU was busy with something else; `None` where the system does not tell.
    pub waited_share: Option<f64>,
    /// Simultaneous users.
    pub users: u32,
    /// `true` when latency counts from a schedule (open loop), `false` for a closed loop.
    pub open_loop: bool,
    /// Spacing of the requests of an open loop, or of a closed loop's bystander if that came at random.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Spacing>,
}

impl GeneratorFacts {
    /// Share of its CPU time above which a figure describes the generator, not the server.
    pub const BOUND: f64 = 0.9;

    /// Returns whether the generator used over 90 % of the CPU time that it was given. Time that it waited for its CPU
    /// was not given: beside another program it may be at its limit with half a CPU.
    pub fn is_bound(&self) -> bool {
        let given = 1.0 - self.waited_share.unwrap_or(0.0).clamp(0.0, 1.0);
        match self.cpu_share {
            Some(share) => share > Self::BOUND * given,
            None => false,
        }
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
    /// Quantile from which on latencies are only lower bounds, because too many requests had no answer when the load
    /// ended. The mean is then too small.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lower_bound_from: Option<f64>,
}

impl Latency {
    /// Returns the latency at `quantile` (0 to 1) in ms: the recorded point nearest above it.
    pub fn at(&self, quantile: f64) -> Option<f64> {
        self.point(quantile).map(|point| point.ms)
    }

    /// Returns the latency as [`Latency::at`] does, with its mark as a lower bound.
    pub fn point(&self, quantile: f64) -> Option<Quantile> {
        let points = &mut self.quantiles.iter();
        let (found, ms) = points.find(|(point, _)| *point + 1e-9 >= quantile)?;
        Some(Quantile {
            ms: *ms,
            is_lower_bound: *found >= self.lower_bound_from.unwrap_or(f64::INFINITY),
        })
    }
}

/// One run of one generator against one server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Generator that measured.
    pub generator: GeneratorFacts,
    /// Recorded span in seconds (without warm-up).
    pub seconds: f64,
    /// Right answers within the recorded span.
    pub completed: u64,
    /// Number of them that answered writes. Their latencies are not among those below.
    #[serde(default, skip_serializing_if = "is_none")]
    pub writes: u64,
    /// Right requests per second. The embedded generator measures from the last answer before the span to the last
    /// within it. So 20 requests per second read as 20 in a span that holds 29 or 30. The rate is within one gap
    /// between answers of `completed / seconds`.
    pub requests_per_second: f64,
    /// Failed requests (warm-up included) by cause: `connect: connection refused`, `time_out`, `closed before an
    /// answer`, `status 500`, …
    pub errors: BTreeMap<String, u64>,
    /// Answers with a wrong body, warm-up included.
    pub wrong_answers: u64,
    /// The first wrong body, shortened, for the message.
    pub first_wrong_answer: Option<String>,
    /// Method and path of the request that it answered; `None` of other generators and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_wrong_request: Option<String>,
    /// Number of requests without an answer when the load ended (neither right nor failed). The latencies below count
    /// them with the time that they had waited. Other generators leave them out there, and so do older records without
    /// `lower_bound_from`.
    #[serde(default)]
    pub unfinished: u64,
    /// Unfinished requests that waited longer than any answer took, if they are too many to be overlooked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unanswered: Option<Unanswered>,
    /// Right answers including those before and after the recorded span; `None` for other generators and in older
    /// records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_all: Option<InAll>,
    /// Latencies of the right answers; in an open loop from the scheduled moment.
    pub latency: Latency,
    /// Open loop only: the same answers timed from the moment each request was really sent, as a
    /// generator that ignores coordinated omission would report them.
    pub service_latency: Option<Latency>,
    /// Right answers in each second of the recorded span.
    pub per_second: Vec<u64>,
    /// Exit code of k6 or Locust: 0, or [`MISSED`] for a threshold of its script. The embedded generator has no script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Result of the load's bystander, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bystander: Option<BystanderOutcome>,
    /// Requests by phase of the load, if it has phases or clients that give up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseOutcome>,
}

/// Requests that were due in one phase of a load, warm-up included, and their ends.
///
/// Every attempt ends in one way: answered in time, given up, or refused. An error is counted in [`Outcome::errors`]
/// alone; an attempt under way when the load ended is counted as sent only.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseOutcome {
    /// Length in seconds; less than the load's own where the load ended before.
    pub seconds: f64,
    /// First attempts.
    pub first_attempts: u64,
    /// Further attempts at the same requests.
    pub retries: u64,
    /// Requests that were answered before their client gave up, at any attempt: the goodput.
    pub in_time: u64,
    /// Attempts that a client gave up; each closed its connection.
    pub given_up: u64,
    /// Attempts that the server refused, with an allowed status.
    pub refused: u64,
    /// Requests that were never sent, because every user of the load was busy for half of the time after which a client
    /// gives up: the load has too few users, or the generator too little CPU time.
    pub unsent: u64,
    /// Time from the begin of the phase, in seconds, until answers are in time: to the end of the first tenth of a second
    /// in which nine of ten due requests were answered in time, if nine of ten are for a second from its begin. `None` if
    /// that never comes.
    pub in_time_after_s: Option<f64>,
}

impl PhaseOutcome {
    /// Returns requests per second that came, without retries.
    pub fn offered(&self) -> f64 {
        (self.first_attempts + self.unsent) as f64 / self.seconds
    }

    /// Returns requests per second that were answered in time.
    pub fn goodput(&self) -> f64 {
        self.in_time as f64 / self.seconds
    }
}

/// Requests that were still without an answer when the load ended, and for longer than any answer took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unanswered {
    /// Number of requests that had waited longer than `long_s`.
    pub requests: u64,
    /// Limit in seconds: a tenth of the recorded span, a second, or twice the longest latency of an answer, whichever
    /// is most.
    pub long_s: f64,
    /// Longest time that one of them had waited, in seconds.
    pub longest_s: f64,
    /// Time of the last answer in seconds of the recorded span, if none came after it.
    pub silent_from_s: Option<f64>,
}

impl std::fmt::Display for Unanswered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            requests,
            long_s,
            longest_s,
            silent_from_s,
        } = self;
        let waited = figures::things(*requests, "request");
        match silent_from_s {
            Some(from) if *from <= 0.0 => write!(
                f,
                "no answer came in the recorded span: {waited} waited for more than {long_s:.1} s when the load \
                 ended, the longest for {longest_s:.1} s"
            ),
            Some(from) => write!(
                f,
                "answers stopped {from:.1} s after the recorded span began: {waited} waited for more than \
                 {long_s:.1} s when the load ended, the longest for {longest_s:.1} s"
            ),
            None => write!(
                f,
                "{waited} waited for more than {long_s:.1} s when the load ended, the longest for \
                 {longest_s:.1} s, and no answer took half as long; load longer to see whether they are answered"
            ),
        }
    }
}

/// Right answers of a whole run, warm-up included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InAll {
    /// Right answers to reads.
    pub reads: u64,
    /// Right answers to writes.
    pub writes: u64,
}

/// Result of the requests beside the load, which are paced in an open loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BystanderOutcome {
    /// Right answers within the recorded span, and after it to requests that were due in it.
    pub completed: u64,
    /// Failed requests by cause, as in [`Outcome::errors`].
    pub errors: BTreeMap<String, u64>,
    /// Answers with a wrong body.
    pub wrong_answers: u64,
    /// Requests that were due in the recorded span and had no answer yet when the load ended.
    pub unfinished: u64,
    /// Latencies from the scheduled moment.
    pub latency: Latency,
    /// Latencies of these answers from the moment each request was really sent.
    pub service_latency: Latency,
}

// serde passes a reference.
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

/// Returns whether `rate`, in requests per second, can be that of `count` answers in `span` seconds.
pub fn belongs_to(rate: f64, count: f64, span: f64) -> bool {
    (rate * span - count).abs() <= 2.0 + 0.1 * count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_bound(cpu_share: Option<f64>, waited_share: Option<f64>) -> bool {
        GeneratorFacts {
            cpu_share,
            waited_share,
            ..GeneratorFacts::default()
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
