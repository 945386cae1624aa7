//! CPU profiles taken from inside the process; the last is kept.

use std::sync::Arc;
use std::time::Duration;

use diagnosis::threads::CpuSamples;

use crate::cpu_profile::CpuProfile;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    feature = "cpu"
))]
use crate::cpu_sampler;
use crate::error::EndpointError;
use crate::last::Last;
use crate::limits::within;
use crate::memory_left;
use crate::permit;
#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    feature = "cpu"
)))]
use crate::permit::Permit;

/// Takes profiles and remembers the last.
#[derive(Debug, Default)]
pub(crate) struct CpuProfiler {
    pub(crate) last: Last<CpuProfile>,
}

impl CpuProfiler {
    /// Samples a second of CPU time.
    pub(crate) const DEFAULT_FREQUENCY: u32 = 99;

    /// Samples the whole process for `duration`.
    pub(crate) async fn record(
        &self,
        duration: Duration,
        frequency: u32,
    ) -> Result<Arc<CpuProfile>, EndpointError> {
        Ok(self.record_samples(duration, frequency).await?.0)
    }

    /// Samples the whole process for `duration`, and returns the samples with the profile.
    pub(crate) async fn record_samples(
        &self,
        duration: Duration,
        frequency: u32,
    ) -> Result<(Arc<CpuProfile>, CpuSamples), EndpointError> {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        within(1..=1000, frequency, "frequency", duration, cpus)?;
        memory_left::is_enough()?;
        let taken = cpu_sampler::record(duration, frequency, permit::cpu()?);
        let (profile, samples) = taken.await?;
        Ok((self.last.keep(profile), samples))
    }
}

#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    feature = "cpu"
)))]
mod cpu_sampler {
    use super::{CpuProfile, CpuSamples, Duration, EndpointError, Permit};

    #[allow(clippy::unused_async)] // one signature for both
    pub(super) async fn record(
        _: Duration,
        _: u32,
        _: Permit,
    ) -> Result<(CpuProfile, CpuSamples), EndpointError> {
        Err(EndpointError::Unsupported(if cfg!(target_os = "linux") {
            "CPU profiles in process need x86-64 or aarch64, and the feature `cpu` of debug-endpoints; without them use \
             perf or samply"
        } else {
            "CPU profiles in process need Linux; elsewhere use samply, or on Windows the Windows Performance Recorder"
        }))
    }
}
