//! The await profiler of the service, and the last profile that it took.

use std::sync::Arc;
use std::time::Duration;

use await_profile::{AwaitProfiler, Percentile, Profile, ProfileError, ProfileOptions};

use crate::error::EndpointError;
use crate::last::Last;
use crate::limits::within;
use crate::memory_left;
use crate::metrics;
use crate::own_thread::no_thread;
use crate::permit;

/// The service's profiler and the last profile that it took.
#[derive(Debug, Clone)]
pub(crate) struct Waits {
    profiler: AwaitProfiler,
    pub(crate) last: Arc<Last<Profile>>,
}

impl Default for Waits {
    /// Makes an armed profiler, which also sees requests that began before the profile. In a service whose requests
    /// hang, there are no others.
    fn default() -> Self {
        Self {
            profiler: AwaitProfiler::new().armed(),
            last: Arc::default(),
        }
    }
}

impl Waits {
    pub(crate) fn profiler(&self) -> AwaitProfiler {
        self.profiler.clone()
    }

    /// Returns the requests that passed the layer, for the metrics.
    pub(crate) fn requests(&self) -> metrics::Requests {
        metrics::Requests {
            in_flight: self.profiler.in_flight(),
            latencies: self.profiler.latencies(),
        }
    }

    /// Samples the requests in flight for `duration`, `captures` a second or the default.
    pub(crate) async fn record(
        &self,
        duration: Duration,
        captures: Option<u32>,
    ) -> Result<Arc<Profile>, EndpointError> {
        self.take(ProfileOptions::lasting(duration), captures).await
    }

    /// Samples as [`record`](Self::record) does, and times every request that begins meanwhile.
    pub(crate) async fn record_tail(
        &self,
        duration: Duration,
        captures: Option<u32>,
        percentile: Percentile,
    ) -> Result<Arc<Profile>, EndpointError> {
        let options = ProfileOptions::lasting(duration).tail(percentile);
        self.take(options, captures).await
    }

    async fn take(
        &self,
        options: ProfileOptions,
        captures: Option<u32>,
    ) -> Result<Arc<Profile>, EndpointError> {
        let captures = captures.unwrap_or(ProfileOptions::DEFAULT_RATE);
        let duration = options.duration;
        within(1..=100_000, captures, "captures", duration, 1)?;
        let options = options.captures_per_second(captures);
        memory_left::is_enough()?;
        // The permit is held until the names are looked up, even if the client hangs up before.
        let permit = permit::waits()?;
        let profile = self.profiler.profile_holding(options, permit).await;
        let profile = profile.map_err(|error| match error {
            ProfileError::Busy => EndpointError::Busy("await profile"),
            ProfileError::Thread(error) => no_thread(&error),
            other => EndpointError::failed(other),
        })?;
        Ok(self.last.keep(profile))
    }
}
