//! Scans of a data set: how many, on how many threads, and on which processors.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};

use prometheus_client::metrics::counter::Counter;

use crate::metric::Metric;

/// Counts scans on `/metrics`, with the threads and the processors that they ran on. Clones count
/// together.
#[derive(Debug, Clone)]
pub struct Scans(Arc<Counted>);

#[derive(Debug)]
struct Counted {
    /// Processors that the process might use when it started, before any of its threads was pinned.
    usable: usize,
    scans: Counter,
    threads: Mutex<HashSet<ThreadId>>,
    processors: Mutex<HashSet<usize>>,
}

/// The counts of one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Processors that the process might use when it started.
    pub(crate) usable: usize,
    /// Scans that have ended.
    scans: u64,
    /// Threads that scanned.
    threads: usize,
    /// Processors on which a scan ended.
    processors: usize,
}

impl Default for Scans {
    /// Call it before any thread is pinned: a pinned thread sees its own processors only.
    fn default() -> Self {
        Self(Arc::new(Counted {
            usable: usable(),
            scans: Counter::default(),
            threads: Mutex::default(),
            processors: Mutex::default(),
        }))
    }
}

impl Scans {
    /// A scan has ended on the calling thread.
    pub fn note(&self) {
        self.0.scans.inc();
        let threads = insert(&self.0.threads, thread::current().id());
        // A system that does not tell where a thread runs lets it run anywhere.
        insert(&self.0.processors, processor().unwrap_or(threads));
    }

    pub(crate) fn seen(&self) -> Seen {
        Seen {
            usable: self.0.usable,
            scans: self.0.scans.get(),
            threads: lock(&self.0.threads).len(),
            processors: lock(&self.0.processors).len(),
        }
    }
}

impl Seen {
    /// How well workers and processors match, from 0 to 1: processors that worked, and threads that
    /// did the work, against the larger number of processors usable and threads. Too few workers
    /// lower it, and so do too many.
    fn match_of_workers(self) -> f64 {
        let working = self.threads.min(self.processors);
        working as f64 / self.threads.max(self.usable).max(1) as f64
    }

    pub(crate) fn metrics(self) -> Vec<Metric> {
        vec![
            Metric::count("scans_total", "Scans of the data set", self.scans),
            Metric::count(
                "scan_workers",
                "Threads that have scanned",
                self.threads as u64,
            ),
            Metric::count(
                "scan_processors",
                "Processors on which a scan has ended",
                self.processors as u64,
            ),
            Metric::count(
                "processors_usable",
                "Processors that the process might use when it started",
                self.usable as u64,
            ),
            Metric::ratio(
                "workers_match_processors",
                "Processors that scan by as many threads, against the processors usable; or the threads, where they are more",
                self.match_of_workers(),
            ),
        ]
    }
}

/// Adds to a set and returns how many there are.
fn insert<T: Eq + Hash>(set: &Mutex<HashSet<T>>, item: T) -> usize {
    let mut set = lock(set);
    set.insert(item);
    set.len()
}

fn lock<T>(set: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    set.lock().unwrap_or_else(PoisonError::into_inner)
}

// Not by many_cpus: it remembers what it saw when it was first asked, and a chapter asks it itself.
#[cfg(target_os = "linux")]
fn usable() -> usize {
    rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count() as usize)
}

#[cfg(target_os = "linux")]
#[allow(clippy::unnecessary_wraps)] // Elsewhere there may be none.
fn processor() -> Option<usize> {
    Some(rustix::thread::sched_getcpu())
}

#[cfg(windows)]
fn usable() -> usize {
    many_cpus::SystemHardware::current().processors().len()
}

#[cfg(windows)]
#[allow(clippy::unnecessary_wraps)] // Elsewhere there may be none.
fn processor() -> Option<usize> {
    Some(many_cpus::SystemHardware::current().current_processor_id() as usize)
}

#[cfg(not(any(target_os = "linux", windows)))]
fn usable() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(not(any(target_os = "linux", windows)))]
fn processor() -> Option<usize> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scans_are_counted_with_their_threads_and_processors() {
        let scans = Scans::default();
        scans.note();
        scans.note();
        let seen = scans.seen();
        assert_eq!((seen.scans, seen.threads), (2, 1));
        assert!(seen.processors >= 1 && seen.usable >= 1, "{seen:?}");
        let other = scans.clone();
        thread::spawn(move || other.note())
            .join()
            .expect("it counts");
        assert_eq!(scans.seen().threads, 2);
    }

    #[test]
    fn too_few_workers_and_too_many_do_not_match_the_processors() {
        let share = |threads, processors| {
            let seen = Seen {
                usable: 4,
                scans: 100,
                threads,
                processors,
            };
            seen.match_of_workers()
        };
        assert!((share(4, 4) - 1.0).abs() < 1e-9);
        assert!((share(1, 1) - 0.25).abs() < 1e-9);
        // One worker that wanders, four workers on one processor, and sixteen on four.
        assert!((share(1, 4) - 0.25).abs() < 1e-9);
        assert!((share(4, 1) - 0.25).abs() < 1e-9);
        assert!((share(16, 4) - 0.25).abs() < 1e-9);
    }
}
