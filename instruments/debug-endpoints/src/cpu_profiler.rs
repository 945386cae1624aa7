//! CPU profiles taken from inside the process; the last is kept.

use std::sync::Mutex;
use std::time::Duration;

use crate::cpu_profile::CpuProfile;
#[cfg(all(unix, feature = "cpu"))]
use crate::cpu_sampler;
use crate::error::EndpointError;
use crate::permit;
#[cfg(not(all(unix, feature = "cpu")))]
use crate::permit::Permit;

/// Takes profiles and remembers the last.
#[derive(Debug, Default)]
pub(crate) struct CpuProfiler {
    last: Mutex<Option<CpuProfile>>,
}

impl CpuProfiler {
    /// Has the first sample taken now: see `cpu_sampler::prime`. Call it before anything else runs.
    pub(crate) fn prime() {
        cpu_sampler::prime();
    }

    /// Samples a second of CPU time.
    pub(crate) const DEFAULT_FREQUENCY: u16 = 99;

    /// Samples the whole process for `duration`.
    pub(crate) async fn record(
        &self,
        duration: Duration,
        frequency: u16,
    ) -> Result<CpuProfile, EndpointError> {
        if !(1..=1000).contains(&frequency) {
            return Err(EndpointError::BadRequest(format!(
                "frequency must be from 1 to 1000 samples a second, not {frequency}"
            )));
        }
        let profile = cpu_sampler::record(duration, frequency, permit::acquire()?).await?;
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

#[cfg(not(all(unix, feature = "cpu")))]
mod cpu_sampler {
    use super::{CpuProfile, Duration, EndpointError, Permit};

    pub(super) fn prime() {}

    #[allow(clippy::unused_async)] // one signature for both
    pub(super) async fn record(
        _: Duration,
        _: u16,
        _: Permit,
    ) -> Result<CpuProfile, EndpointError> {
        Err(EndpointError::Unsupported(if cfg!(unix) {
            "CPU profiles in process need the feature `cpu` of debug-endpoints; without it use perf \
             or samply"
        } else {
            "CPU profiles in process need a Unix system; on Windows use samply or the Windows \
             Performance Recorder"
        }))
    }
}
