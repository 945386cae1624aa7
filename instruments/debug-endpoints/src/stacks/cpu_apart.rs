//! Samples of threads that no signal can or may reach: each is stopped instead, once it has used a period of CPU time.
//!
//! Libraries in C often block all signals in their threads. A small stack, or a small alternate stack, may have no room for
//! a signal, which would end the service. A stop needs no room on a stack.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use diagnosis::Process;
use diagnosis::threads::{Stopper, Unwinder};

use crate::stacks::cpu_timer::used_by;

/// Most names in one note.
const MOST_NAMES: usize = 3;

/// Time after which no further thread is stopped for now.
pub(crate) const LONGEST: Duration = Duration::from_millis(50);

/// Threads that are stopped for their samples.
pub(crate) struct Apart {
    stopper: Stopper,
    /// CPU time of each up to which it has been sampled.
    threads: HashMap<i32, Duration>,
    /// Names of those that were ever sampled so.
    names: BTreeSet<String>,
    /// Reason why the system lets no thread be stopped.
    refused: Option<String>,
}

impl Apart {
    pub(crate) fn new() -> Self {
        Self {
            stopper: Stopper::new(),
            threads: HashMap::new(),
            names: BTreeSet::new(),
            refused: None,
        }
    }

    /// Adds a thread that has been sampled up to this CPU time.
    pub(crate) fn add(&mut self, tid: i32, sampled: Duration) {
        self.threads.insert(tid, sampled);
    }

    /// Keeps the threads for which `is_there` is true.
    pub(crate) fn retain(&mut self, is_there: impl Fn(i32) -> bool) {
        self.threads.retain(|tid, _| is_there(*tid));
    }

    pub(crate) fn has(&self, tid: i32) -> bool {
        self.threads.contains_key(&tid)
    }

    /// Returns whether a thread has too small a stack for a signal, or `None` if that is not known yet. If threads cannot be
    /// stopped, each that computes is assumed to have one.
    pub(crate) fn has_small_stack(&mut self, tid: i32, unwinder: &mut Unwinder) -> Option<bool> {
        self.stopper
            .has_little_room(tid, unwinder)
            .unwrap_or_else(|why| {
                self.refused = Some(why);
                Some(true)
            })
    }

    /// Stops each thread that has used at least a period since its last sample, and passes its number, the periods and its
    /// callers to `each`. A thread that sleeps by now is sampled the next time that it runs.
    pub(crate) fn sample(
        &mut self,
        period: Duration,
        unwinder: &mut Unwinder,
        mut each: impl FnMut(i32, u64, Vec<usize>) -> String,
    ) {
        let mut due = Vec::new();
        for (tid, missing) in self.missing() {
            if let Ok(periods @ 1..) = u32::try_from(missing.as_nanos() / period.as_nanos().max(1))
            {
                due.push((periods, tid));
            }
        }
        due.sort_unstable_by(|a, b| b.cmp(a));
        let began = Instant::now();
        for (periods, tid) in due {
            match self.stopper.stop(tid, unwinder) {
                Ok(Some(stopped)) if stopped.is_running => {
                    *self.threads.entry(tid).or_default() += period * periods;
                    self.names
                        .insert(each(tid, periods.into(), stopped.callers));
                }
                Ok(_) => {}
                Err(why) => self.refused = Some(why),
            }
            // A thread may have to wait for a CPU before it can stop.
            if began.elapsed() > LONGEST {
                break;
            }
        }
    }

    /// Returns the CPU time without a sample of each thread.
    pub(crate) fn missing(&self) -> Vec<(i32, Duration)> {
        let mut missing = Vec::new();
        for (tid, sampled) in &self.threads {
            let used = used_by(*tid).unwrap_or_default();
            missing.push((*tid, used.saturating_sub(*sampled)));
        }
        missing
    }

    /// Returns a sentence on the threads that were stopped for their samples, if there are any.
    pub(crate) fn note(&self) -> Option<String> {
        if self.names.is_empty() {
            return None;
        }
        Some(format!(
            "Threads that block SIGPROF, or have too small a stack for a signal, were stopped for each sample instead: {}.",
            listed(self.names.iter().map(String::as_str))
        ))
    }

    /// Returns why threads cannot be stopped, if the system has refused it.
    pub(crate) fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }
}

/// Returns the first names, and the number of the others.
pub(crate) fn listed<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let more = names.len().saturating_sub(MOST_NAMES);
    let first: Vec<&str> = names.take(MOST_NAMES).collect();
    match more {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// Returns whether a thread of this process blocks SIGPROF.
pub(crate) fn blocks_the_signal(tid: i32) -> bool {
    let status = Process::this().text(&format!("task/{tid}/status"));
    let status = status.unwrap_or_default();
    let mut lines = status.lines();
    let blocked = lines.find_map(|line| line.strip_prefix("SigBlk:"));
    let blocked = u64::from_str_radix(blocked.unwrap_or_default().trim(), 16).unwrap_or_default();
    blocked >> (libc::SIGPROF - 1) & 1 == 1
}
