//! CPU time that other programs use while something of this command runs.

use children::processes::{self, CpuTimes};

/// CPU times of the machine and of this command at the beginning of an interval.
#[derive(Debug)]
pub struct Neighbours(Option<CpuTimes>);

impl Neighbours {
    /// Begins an interval.
    pub fn watch() -> Self {
        Self(now())
    }

    /// Returns the share (0 to 1) of the machine's CPU time since then that other programs used; `None` where the system
    /// does not report it.
    pub fn share(&self) -> Option<f64> {
        Some(self.0?.used_by_others(&now()?))
    }
}

/// Reads the times now. Those of this command hold everything that it has started.
fn now() -> Option<CpuTimes> {
    let own = processes::from(std::process::id())?;
    CpuTimes::now(&[], processes::cpu_seconds(&own))
}
