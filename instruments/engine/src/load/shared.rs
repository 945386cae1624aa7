//! State that the threads of one run share.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use children::Interrupt;

use crate::traffic::Traffic;

use crate::load::target::Target;

/// Progress of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Time since the first user came.
    pub elapsed: Duration,
    /// Time that the whole run takes: ramp, warm-up, duration.
    pub total: Duration,
    /// Number of right answers recorded.
    pub completed: u64,
    /// Number of failed requests and wrong answers.
    pub failed: u64,
    /// Median latency so far, on the generator thread that has the longest; zero before any answer.
    pub median: Duration,
    /// 99th percentile of latency so far, on the generator thread that has the longest.
    pub p99: Duration,
}

/// Moments at which the parts of a load begin and end; the same for every thread.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timeline {
    /// Moment at which the first user comes.
    pub(super) begin: Instant,
    /// Moment at which all users have come and the warm-up begins.
    pub(super) all_here: Instant,
    /// Start of the recorded span.
    pub(super) record_from: Instant,
    /// End of the recorded span.
    pub(super) end: Instant,
    /// Last moment at which the load ends: it goes on for a while after the span if requests of its bystander that were
    /// due before the end wait for their answers.
    pub(super) closes: Instant,
}

/// State that the threads of one run share.
#[derive(Debug)]
pub(super) struct Shared<'r> {
    pub(super) target: Target,
    pub(super) load: &'r Traffic,
    pub(super) timeline: Timeline,
    pub(super) threads: usize,
    pub(super) interrupt: &'r Interrupt,
    /// Set when a thread failed: the others need not go on.
    pub(super) abandoned: AtomicBool,
    /// Right answers by thread, published for the progress display a few times a second.
    pub(super) completed: Vec<AtomicU64>,
    pub(super) failed: Vec<AtomicU64>,
    /// Number of threads whose bystander waits for last answers.
    pub(super) waiting: AtomicUsize,
    /// Median latency by thread, in nanoseconds.
    pub(super) median: Vec<AtomicU64>,
    pub(super) p99: Vec<AtomicU64>,
}

impl Shared<'_> {
    /// Returns the progress of the run.
    pub(super) fn progress(&self) -> Progress {
        let mut progress = Progress {
            elapsed: self.timeline.begin.elapsed(),
            total: self.timeline.end - self.timeline.begin,
            completed: 0,
            failed: 0,
            median: Duration::ZERO,
            p99: Duration::ZERO,
        };
        for thread in 0..self.threads {
            progress.completed += self.completed[thread].load(Ordering::Relaxed);
            progress.failed += self.failed[thread].load(Ordering::Relaxed);
            let median = self.median[thread].load(Ordering::Relaxed);
            progress.median = progress.median.max(Duration::from_nanos(median));
            let p99 = self.p99[thread].load(Ordering::Relaxed);
            progress.p99 = progress.p99.max(Duration::from_nanos(p99));
        }
        progress
    }
}
