//! CPU profiles taken from inside the process; the last is kept.

use std::sync::Arc;
use std::time::Duration;

use diagnosis::threads::CpuSamples;

use crate::cpu_profile::CpuProfile;
use crate::error::EndpointError;
use crate::last::Last;
use crate::limits::within;
use crate::memory_left;
use crate::permit;
use crate::stacks::cpu_sampler;

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
