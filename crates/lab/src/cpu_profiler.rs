//! CPU profiles taken from inside the process: one at a time, and the last is kept.

use std::sync::Mutex;
use std::time::Duration;

use crate::admin_error::AdminError;
use crate::cpu_profile::CpuProfile;
#[cfg(unix)]
use crate::cpu_sampler;

/// Takes one profile at a time and remembers the last.
#[derive(Debug, Default)]
pub(crate) struct CpuProfiler {
    last: Mutex<Option<CpuProfile>>,
    running: tokio::sync::Mutex<()>,
}

impl CpuProfiler {
    /// A profiler that is ready to sample a loaded server. Call it before anything else runs: see
    /// `cpu_sampler::prime`.
    pub(crate) fn ready() -> Self {
        cpu_sampler::prime();
        Self::default()
    }

    /// Samples a second of CPU time.
    pub(crate) const DEFAULT_FREQUENCY: u16 = 99;

    /// Samples the whole process for `duration`.
    pub(crate) async fn record(
        &self,
        duration: Duration,
        frequency: u16,
    ) -> Result<CpuProfile, AdminError> {
        if !(1..=1000).contains(&frequency) {
            return Err(AdminError::BadRequest(format!(
                "frequency must be from 1 to 1000 samples a second, not {frequency}"
            )));
        }
        let _one_at_a_time = self.running.try_lock().map_err(|_| AdminError::Busy)?;
        let profile = cpu_sampler::record(duration, frequency).await?;
        *self.slot() = Some(profile.clone());
        Ok(profile)
    }

    /// The last profile taken, if any.
    pub(crate) fn last(&self) -> Option<CpuProfile> {
        self.slot().clone()
    }

    fn slot(&self) -> std::sync::MutexGuard<'_, Option<CpuProfile>> {
        self.last
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(not(unix))]
mod cpu_sampler {
    use super::{AdminError, CpuProfile, Duration};

    pub(super) fn prime() {}

    pub(super) async fn record(_: Duration, _: u16) -> Result<CpuProfile, AdminError> {
        Err(AdminError::Unsupported(
            "CPU profiles in process need a Unix system; on Windows use samply or the \
             Windows Performance Recorder, as the book describes",
        ))
    }
}
