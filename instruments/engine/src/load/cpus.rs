//! Resources that the operating system grants a measurement: the CPUs that a thread may run on, and the files
//! (connections) that a process may hold open.

use std::path::Path;
use std::time::{Duration, Instant};

use cpu_time::ThreadTime;
use thiserror::Error;

/// A thread could not be kept on the CPUs asked for.
#[derive(Debug, Error)]
#[error(
    "cannot pin a thread to CPU {cpus:?}: {reason}; this process may use {:?}",
    available()
)]
pub struct PinError {
    /// The CPUs asked for.
    pub cpus: Vec<usize>,
    /// The system's words.
    pub reason: String,
}

/// Keeps the calling thread on `cpus`. The threads and processes that it starts from then on inherit this. An empty
/// list changes nothing.
///
/// # Errors
/// If the system refuses, or cannot pin at all (macOS; and on Windows more than one CPU).
pub fn pin_current_thread(cpus: &[usize]) -> Result<(), PinError> {
    if cpus.is_empty() {
        return Ok(());
    }
    set_affinity(cpus).map_err(|reason| PinError {
        cpus: cpus.to_vec(),
        reason,
    })
}

#[cfg(target_os = "linux")]
fn set_affinity(cpus: &[usize]) -> Result<(), String> {
    use rustix::thread::{CpuSet, sched_setaffinity};

    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu >= CpuSet::MAX_CPU {
            return Err(format!("there is no CPU {cpu}"));
        }
        set.set(cpu);
    }
    sched_setaffinity(None, &set).map_err(|error| error.to_string())
}

#[cfg(not(target_os = "linux"))]
fn set_affinity(cpus: &[usize]) -> Result<(), String> {
    match cpus {
        [id] if core_affinity::set_for_current(core_affinity::CoreId { id: *id }) => Ok(()),
        [_] => Err("the system does not let a thread choose its CPU".to_owned()),
        _ => Err("this system pins a thread to one CPU, not to several".to_owned()),
    }
}

/// Returns the CPUs that the calling thread may run on, in rising order; empty where the system does not tell.
#[cfg(target_os = "linux")]
pub fn available() -> Vec<usize> {
    use rustix::thread::{CpuSet, sched_getaffinity};

    let allowed = sched_getaffinity(None).unwrap_or_default();
    (0..CpuSet::MAX_CPU)
        .filter(|cpu| allowed.is_set(*cpu))
        .collect()
}

/// Returns the CPUs that the calling thread may run on, in rising order; empty where the system does not tell.
#[cfg(not(target_os = "linux"))]
pub fn available() -> Vec<usize> {
    let mut cpus: Vec<usize> = core_affinity::get_core_ids()
        .unwrap_or_default()
        .into_iter()
        .map(|core| core.id)
        .collect();
    cpus.sort_unstable();
    cpus
}

/// Returns the number of CPUs that the calling thread may run on, at least one.
pub fn count() -> u32 {
    let mut count = available().len();
    if count == 0 {
        count = match std::thread::available_parallelism() {
            Ok(all) => all.get(),
            Err(_) => 1,
        };
    }
    u32::try_from(count).unwrap_or(u32::MAX)
}

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
