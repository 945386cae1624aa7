//! What the threads of one run share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::traffic::Traffic;

use crate::load::interrupt::Interrupt;
use crate::load::target::Target;

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Since the first user came.
    pub elapsed: Duration,
    /// All that the run takes: ramp, warm-up, duration.
    pub total: Duration,
    /// Right answers recorded.
    pub completed: u64,
    /// Failed requests and wrong answers.
    pub failed: u64,
    /// Median latency so far of the generator thread that sees the longest; zero before any.
    pub median: Duration,
    /// The same of the 99th percentile.
    pub p99: Duration,
}

/// When the parts of a load begin and end; the same for every thread.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timeline {
    /// The first user comes.
    pub(super) begin: Instant,
    /// All users have come; the warm-up begins.
    pub(super) all_here: Instant,
    /// Answers are recorded from here …
    pub(super) record_from: Instant,
    /// … to here.
    pub(super) end: Instant,
}

/// What the threads of one run share.
#[derive(Debug)]
pub(super) struct Shared<'r> {
    pub(super) target: Target,
    pub(super) load: &'r Traffic,
    pub(super) timeline: Timeline,
    pub(super) threads: usize,
    pub(super) interrupt: &'r Interrupt,
    /// Set when a thread failed: the others need not go on.
    pub(super) abandoned: AtomicBool,
    /// For the progress display, a few times a second.
    pub(super) completed: Vec<AtomicU64>,
    pub(super) failed: Vec<AtomicU64>,
    /// In nanoseconds.
    pub(super) median: Vec<AtomicU64>,
    pub(super) p99: Vec<AtomicU64>,
}

impl Shared<'_> {
    /// How far the run is.
    pub(super) fn progress(&self) -> Progress {
        let sum = |counts: &[AtomicU64]| {
            counts
                .iter()
                .map(|count| count.load(Ordering::Relaxed))
                .sum()
        };
        let longest = |times: &[AtomicU64]| {
            let times = times.iter().map(|time| time.load(Ordering::Relaxed));
            Duration::from_nanos(times.max().unwrap_or(0))
        };
        Progress {
            elapsed: self.timeline.begin.elapsed(),
            total: self.timeline.end - self.timeline.begin,
            completed: sum(&self.completed),
            failed: sum(&self.failed),
            median: longest(&self.median),
            p99: longest(&self.p99),
        }
    }
}
