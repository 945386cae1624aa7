//! Scans of a data set: how many, on how many threads, and on which CPUs.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use crate::counters::Activity;
use crate::locked;
use crate::metric::Metric;

/// A data set in memory. `/metrics` counts its scans, with the threads and the CPUs that they ran on.
/// Clones share it.
#[derive(Debug, Clone, Default)]
pub struct DataSet<T> {
    items: Arc<[T]>,
    scans: Scans,
}

impl<T> DataSet<T> {
    pub(crate) fn counted(items: Arc<[T]>, scans: Scans) -> Self {
        Self { items, scans }
    }

    /// Scans the items on the calling thread.
    pub fn scan<R>(&self, how: impl FnOnce(&[T]) -> R) -> R {
        self.scans.count(|| how(&self.items))
    }
}

/// Counts scans. Clones share their counters.
#[derive(Debug, Clone)]
pub(crate) struct Scans(Arc<Counted>);

#[derive(Debug)]
struct Counted {
    /// CPUs that the process might use when it started, before any of its threads was pinned.
    usable: usize,
    /// The usable CPUs, in rising order. The network card is said to interrupt the first one. Known on Linux only.
    own: Option<Vec<usize>>,
    /// Number of other CPUs on which the thread that accepts may run; `None` before it accepts.
    acceptor_elsewhere: Mutex<Option<usize>>,
    scans: Activity,
    /// CPUs of the process on which each thread that scanned may run. Other programs influence where a
    /// thread runs, but not where it may run.
    threads: Mutex<HashMap<ThreadId, Vec<usize>>>,
    cpus: Mutex<HashSet<usize>>,
}

impl Default for Scans {
    /// Call it before any thread is pinned: a pinned thread sees its own CPUs only.
    fn default() -> Self {
        Self(Arc::new(Counted {
            usable: usable(),
            own: cfg!(target_os = "linux").then(|| allowed_cpus(0)),
            acceptor_elsewhere: Mutex::default(),
            scans: Activity::default(),
            threads: Mutex::default(),
            cpus: Mutex::default(),
        }))
    }
}

impl Scans {
    /// Limits this process to the last of its CPUs, and returns counters for it. Code that numbers CPUs from 0 then
    /// takes others. Call it while the process has one thread, for other threads keep their CPUs. Works on Linux
    /// only.
    pub(crate) fn on_the_last(cpus: u32) -> Self {
        #[cfg(target_os = "linux")]
        {
            let mut only = rustix::thread::CpuSet::new();
            let last = allowed_cpus(0).into_iter().rev().take(cpus as usize);
            last.for_each(|cpu| only.set(cpu));
            // A system that refuses counts as many CPUs as before, and says so on /metrics.
            let _ = rustix::thread::sched_setaffinity(None, &only);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = cpus;
        Self::default()
    }

    /// The calling thread accepts connections.
    pub(crate) fn note_acceptor(&self) {
        let Some(&first) = self.0.own.as_ref().and_then(|own| own.first()) else {
            return;
        };
        let allowed = allowed_cpus(first).into_iter();
        let elsewhere = allowed.filter(|cpu| *cpu != first).count();
        let mut most = locked(&self.0.acceptor_elsewhere);
        *most = (*most).max(Some(elsewhere));
    }

    fn count<R>(&self, scan: impl FnOnce() -> R) -> R {
        let running = self.0.scans.begin();
        let result = scan();
        drop(running);
        self.note_thread();
        result
    }

    /// The calling thread has scanned.
    fn note_thread(&self) {
        let here = thread::current().id();
        let mut threads = locked(&self.0.threads);
        let is_new = !threads.contains_key(&here);
        // A system that does not tell where a thread runs lets it run anywhere.
        let cpu = current_cpu().unwrap_or_else(|| threads.len() + usize::from(is_new));
        locked(&self.0.cpus).insert(cpu);
        // It may have been pinned since its last scan; where nobody tells, it was not.
        if is_new || cfg!(target_os = "linux") {
            let mut allowed = allowed_cpus(cpu);
            // A thread that was pinned elsewhere uses none of the CPUs that are the process's.
            allowed.retain(|cpu| self.0.own.as_ref().is_none_or(|own| own.contains(cpu)));
            threads.insert(here, allowed);
        }
    }

    /// CPUs that the process might use when it started.
    pub(crate) fn usable(&self) -> usize {
        self.0.usable
    }

    /// Returns the number of CPUs on which the threads that scanned may run.
    fn allowed(&self) -> usize {
        let threads = locked(&self.0.threads);
        threads.values().flatten().collect::<HashSet<_>>().len()
    }

    pub(crate) fn metrics(&self) -> Vec<Metric> {
        let (usable, allowed) = (self.0.usable, self.allowed());
        let workers = locked(&self.0.threads).len();
        let acceptor = locked(&self.0.acceptor_elsewhere).map(|cpus| {
            let help = "CPUs but the process's first on which the thread that accepts may run";
            Metric::count("acceptor_cpus_elsewhere", help, cpus as u64)
        });
        let counted = vec![
            Metric::count(
                "scans_running_peak",
                "Most scans at once since the start",
                self.0.scans.peak(),
            ),
            Metric::count("scan_workers", "Threads that have scanned", workers as u64),
            Metric::count(
                "scan_cpus",
                "CPUs on which a scan has ended",
                locked(&self.0.cpus).len() as u64,
            ),
            Metric::count(
                "scan_cpus_allowed",
                "CPUs on which threads that have scanned may run",
                allowed as u64,
            ),
            Metric::count(
                "cpus_usable",
                "CPUs that the process might use when it started",
                usable as u64,
            ),
            Metric::gauge(
                "workers_match_cpus",
                "min(scan_workers, scan_cpus_allowed) / max(scan_workers, cpus_usable)",
                match_of_workers(workers, allowed, usable),
            ),
        ];
        counted.into_iter().chain(acceptor).collect()
    }
}

/// Returns how well workers and CPUs match, from 0 to 1. It is 1 when the threads that scanned may run on
/// every usable CPU, and are exactly as many. Too few workers lower it, and so do too many.
fn match_of_workers(workers: usize, allowed: usize, usable: usize) -> f64 {
    workers.min(allowed) as f64 / workers.max(usable).max(1) as f64
}

// Not by many_cpus: it keeps its first answer for the life of the process, and a chapter asks it too.
#[cfg(target_os = "linux")]
fn usable() -> usize {
    rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count() as usize)
}

/// Returns the CPUs on which the calling thread may run; `current` alone if the system does not tell.
#[cfg(target_os = "linux")]
fn allowed_cpus(current: usize) -> Vec<usize> {
    use rustix::thread::{CpuSet, sched_getaffinity};

    sched_getaffinity(None).map_or(vec![current], |set| {
        (0..CpuSet::MAX_CPU)
            .filter(|cpu| set.is_set(*cpu))
            .collect()
    })
}

/// Returns `current` alone, on systems other than Linux: Windows' affinity covers only one processor group.
#[cfg(not(target_os = "linux"))]
fn allowed_cpus(current: usize) -> Vec<usize> {
    vec![current]
}

#[cfg(windows)]
fn usable() -> usize {
    many_cpus::SystemHardware::current().processors().len()
}

#[cfg(windows)]
#[allow(clippy::unnecessary_wraps)] // Elsewhere there may be none.
fn current_cpu() -> Option<usize> {
    Some(many_cpus::SystemHardware::current().current_processor_id() as usize)
}

#[cfg(not(any(target_os = "linux", windows)))]
fn usable() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(not(windows))]
fn current_cpu() -> Option<usize> {
    page_regions::processor()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_worker_that_pins_itself_later_is_noticed() {
        let scans = Scans::default();
        let scan = || {
            scans.count(|| ());
            scans.allowed()
        };
        let (free, pinned) = thread::scope(|scope| {
            let worker = scope.spawn(|| {
                let free = scan();
                let mut one = rustix::thread::CpuSet::new();
                one.set(allowed_cpus(0)[0]);
                rustix::thread::sched_setaffinity(None, &one).expect("its own CPU");
                (free, scan())
            });
            worker.join().expect("it counts")
        });
        assert_eq!((free, pinned), (scans.0.usable, 1));
    }

    #[test]
    fn too_few_workers_and_too_many_do_not_match_the_cpus() {
        let share = |workers, allowed| match_of_workers(workers, allowed, 4);
        assert!((share(4, 4) - 1.0).abs() < 1e-9);
        assert!((share(1, 1) - 0.25).abs() < 1e-9);
        // One worker that wanders, four workers on one CPU, and sixteen on four.
        assert!((share(1, 4) - 0.25).abs() < 1e-9);
        assert!((share(4, 1) - 0.25).abs() < 1e-9);
        assert!((share(16, 4) - 0.25).abs() < 1e-9);
    }
}
