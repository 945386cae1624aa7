//! CPUs that a thread may run on. The threads and children that it starts inherit them.

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
