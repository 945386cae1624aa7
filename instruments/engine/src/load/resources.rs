//! Resources that the operating system grants a load: the files (connections) that a process may hold open, and the
//! CPU time of its threads.

use std::path::Path;
use std::time::{Duration, Instant};

use cpu_time::ThreadTime;
use thiserror::Error;

/// Fewer files may be open than a load needs connections.
#[derive(Debug, Error)]
#[error(
    "{needed} files (one a connection) must be open at once, but this system allows the process \
     {allowed}; run `ulimit -n {needed}` in this terminal first (as root if it refuses), or ask for fewer users"
)]
pub struct FileLimit {
    /// Files needed.
    pub needed: u64,
    /// The hard limit.
    pub allowed: u64,
}

/// Makes sure that this process may hold `needed` files open, raising its own soft limit if it must.
///
/// # Errors
/// If the hard limit is lower: only the reader can raise that.
pub fn allow_open_files(needed: u64) -> Result<(), FileLimit> {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

        let limit = getrlimit(Resource::Nofile);
        if let Some(current) = limit.current
            && current < needed
        {
            let allowed = limit.maximum.unwrap_or(needed).min(needed);
            let raised = Rlimit {
                current: Some(allowed),
                maximum: limit.maximum,
            };
            // macOS has a lower limit still, and gives no number: connections beyond it will fail.
            let _ = setrlimit(Resource::Nofile, raised);
            if allowed < needed {
                return Err(FileLimit { needed, allowed });
            }
        }
    }
    let _ = needed;
    Ok(())
}

/// Returns how long the calling thread has been ready to run without getting a CPU; `None` where the system does not
/// tell. The time grows while something else keeps the thread's CPU busy.
pub(crate) fn waited_for_cpu() -> Option<Duration> {
    waited(Path::new("/proc/thread-self"))
}

/// Returns the time of [`waited_for_cpu`] for all threads of another process together.
pub(crate) fn process_waited_for_cpu(process: u32) -> Option<Duration> {
    std::fs::read_dir(format!("/proc/{process}/task"))
        .ok()?
        .map(|thread| waited(&thread.ok()?.path()))
        .sum()
}

fn waited(thread: &Path) -> Option<Duration> {
    // Three numbers: nanoseconds on a CPU, nanoseconds waiting for one, time slices.
    // Only Linux has this file.
    let text = std::fs::read_to_string(thread.join("schedstat")).ok()?;
    let waited = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(Duration::from_nanos(waited))
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
