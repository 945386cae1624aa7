//! CPU time of the threads of a load.

use std::path::Path;
use std::time::{Duration, Instant};

use children::processes;
use cpu_time::ThreadTime;

/// Returns how long the calling thread has been ready to run without getting a CPU; `None` where the system does not
/// tell. The time grows while something else keeps the thread's CPU busy.
pub(crate) fn waited_for_cpu() -> Option<Duration> {
    processes::waited_for_cpu(Path::new("/proc/thread-self"))
}

/// CPU time of one thread, as shares of the time that passed.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// Share on a CPU; `None` where the system does not tell.
    pub used: Option<f64>,
    /// Share ready to run but not running; `None` likewise.
    pub waited: Option<f64>,
}

/// CPU time of a thread at the moment when a measurement begins.
pub struct Spent {
    at: Instant,
    used: Option<ThreadTime>,
    waited: Option<Duration>,
}

impl Spent {
    /// Begins a measurement of the calling thread.
    pub fn now() -> Self {
        Self {
            at: Instant::now(),
            used: ThreadTime::try_now().ok(),
            waited: waited_for_cpu(),
        }
    }

    /// Returns what the thread has used since the measurement began. Call this on the same thread.
    pub fn until_now(&self) -> Cost {
        let wall = self.at.elapsed().as_secs_f64();
        let mut cost = Cost {
            used: None,
            waited: None,
        };
        if let Some(before) = self.used
            && let Ok(used) = before.try_elapsed()
        {
            cost.used = Some(used.as_secs_f64() / wall);
        }
        if let (Some(before), Some(now)) = (self.waited, waited_for_cpu()) {
            cost.waited = Some(now.saturating_sub(before).as_secs_f64() / wall);
        }
        cost
    }
}
