//! Waits for a CPU of the threads that run requests, by the scheduler's times. Linux only.

use std::collections::HashMap;
use std::fs;
use std::time::{Duration, Instant};

use cpu_time::ProcessTime;
use diagnosis::Process;

use crate::incidents::condition::Cpu;

/// Most threads that are read.
const MOST_THREADS: usize = 64;

/// A thread at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sched {
    /// True if it ran, or wanted to.
    is_ready: bool,
    /// CPU time that it has used.
    ran: Duration,
    /// Time for which it has waited for a CPU. The kernel adds a wait when it is over.
    delayed: Duration,
    /// Number of times that it got a CPU.
    slices: u64,
}

impl Sched {
    fn read(tid: i32) -> Option<Self> {
        let file = |name| Process::this().text(&format!("task/{tid}/{name}"));
        let stat = file("stat").ok()?;
        let (_, state) = stat.rsplit_once(") ")?;
        let schedstat = file("schedstat").ok()?;
        let mut times = schedstat.split_whitespace();
        Some(Self {
            is_ready: state.starts_with('R'),
            ran: Duration::from_nanos(times.next()?.parse().ok()?),
            delayed: Duration::from_nanos(times.next()?.parse().ok()?),
            slices: times.next()?.parse().ok()?,
        })
    }

    /// Returns for how long it waited for a CPU since `before`, which was `length` ago.
    fn waited_since(self, before: Self, length: Duration) -> Duration {
        let mut waited = self.delayed.saturating_sub(before.delayed);
        if self.is_ready && before.is_ready && self.slices == before.slices {
            // It did not get one; or it had one, and lost it or not.
            waited += length.saturating_sub(self.ran.saturating_sub(before.ran));
        }
        waited.min(length)
    }
}

/// Looks at the threads that run requests.
#[derive(Debug, Default)]
pub(crate) struct Delays {
    before: Option<Look>,
}

#[derive(Debug)]
struct Look {
    at: Instant,
    process: ProcessTime,
    threads: HashMap<i32, Sched>,
}

impl Look {
    fn now() -> Self {
        let mut threads = HashMap::new();
        for tid in tids() {
            if let Some(sched) = Sched::read(tid) {
                threads.insert(tid, sched);
            }
        }
        Self {
            at: Instant::now(),
            process: ProcessTime::now(),
            threads,
        }
    }

    /// Returns whether a thread waited for a CPU for most of the time since `before`, and others had it.
    fn cpu_since(&self, before: &Self) -> Cpu {
        let length = self.at.saturating_duration_since(before.at);
        let mut lacked = false;
        for (tid, now) in &self.threads {
            if let Some(before) = before.threads.get(tid) {
                lacked |= now.waited_since(*before, length) > length / 2;
            }
        }
        let used = self.process.duration_since(before.process);
        let is_own_doing = used >= length * cpus() / 2;
        if lacked && !is_own_doing {
            Cpu::Lacked
        } else {
            Cpu::Had
        }
    }
}

impl Delays {
    /// Begins to measure.
    pub(crate) fn begin(&mut self) {
        self.before = Some(Look::now());
    }

    /// Ends the measurement that was begun, and returns what it says.
    pub(crate) fn end(&mut self) -> Cpu {
        match self.before.take() {
            Some(before) => Look::now().cpu_since(&before),
            None => Cpu::NotAsked,
        }
    }
}

fn cpus() -> u32 {
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    u32::try_from(cpus).unwrap_or(u32::MAX)
}

/// Returns the threads that have begun requests, or the first ones if nobody knows of any.
fn tids() -> Vec<i32> {
    let (mut all, mut serving) = (Vec::new(), Vec::new());
    let Ok(tasks) = fs::read_dir("/proc/self/task") else {
        return all;
    };
    for task in tasks.flatten() {
        if let Some(name) = task.file_name().to_str()
            && let Ok(tid) = name.parse()
        {
            all.push(tid);
            if await_profile::has_begun_requests(tid) {
                serving.push(tid);
            }
        }
    }
    let mut chosen = if serving.is_empty() { all } else { serving };
    chosen.truncate(MOST_THREADS);
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_waits_for_a_cpu_if_it_wants_one_and_does_not_get_on() {
        let ms = Duration::from_millis;
        let at = |is_ready, ran, delayed, slices| Sched {
            is_ready,
            ran: ms(ran),
            delayed: ms(delayed),
            slices,
        };
        let before = at(true, 100, 7, 3);
        for (now, waited, what) in [
            (at(true, 120, 7, 3), 0, "it runs"),
            (at(true, 102, 7, 3), 18, "it lost its CPU"),
            (at(true, 100, 7, 3), 20, "it waits"),
            (at(true, 105, 22, 4), 15, "it waited"),
            (at(false, 101, 7, 3), 0, "it sleeps"),
        ] {
            assert_eq!(now.waited_since(before, ms(20)), ms(waited), "{what}");
        }
        let slept = at(false, 100, 7, 3);
        assert_eq!(before.waited_since(slept, ms(20)), ms(0), "it woke up");
    }

    #[test]
    fn this_systems_threads_are_read() {
        let mut delays = Delays::default();
        assert_eq!(delays.end(), Cpu::NotAsked);
        delays.begin();
        let is_read = delays
            .before
            .as_ref()
            .is_some_and(|look| !look.threads.is_empty());
        assert!(is_read);
        assert_ne!(delays.end(), Cpu::NotAsked);
    }
}
