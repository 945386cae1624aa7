//! The await profiler of the service, and the last profile that it took.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use await_profile::{AwaitProfiler, Percentile, Profile, ProfileError, ProfileOptions, WaitCounts};

use crate::error::EndpointError;
use crate::incidents::log_line;
use crate::last::Last;
use crate::limits::within;
use crate::memory_left;
use crate::metrics;
use crate::own_thread::no_thread;
use crate::permit::{self, Permit};

/// The service's profiler and the last profile that it took.
#[derive(Debug, Clone)]
pub(crate) struct Waits {
    profiler: AwaitProfiler,
    pub(crate) last: Arc<Last<Profile>>,
    /// Counts of waits, if the service has them counted.
    counts: Option<WaitCounts>,
}

impl Default for Waits {
    /// Makes an armed profiler, which also sees requests that began before the profile. In a service whose requests
    /// hang, there are no others.
    fn default() -> Self {
        await_profile::tell_tasks_apart(task_number);
        Self {
            profiler: AwaitProfiler::new().armed(),
            last: Arc::default(),
            counts: None,
        }
    }
}

/// Returns the number of the task that this thread polls. A task's number can only be hashed, which is its number.
fn task_number() -> Option<u64> {
    let mut number = Number(0);
    tokio::task::try_id()?.hash(&mut number);
    Some(number.0)
}

/// Hasher that keeps a number as it is.
struct Number(u64);

impl Hasher for Number {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0 << 8 | u64::from(*byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

impl Waits {
    pub(crate) fn profiler(&self) -> AwaitProfiler {
        self.profiler.clone()
    }

    /// Counts waits from now on, unless that is done already.
    pub(crate) fn count(&mut self) {
        match self.profiler.count_waits_holding(Names::permit) {
            Ok(counts) => self.counts = Some(counts),
            Err(ProfileError::Busy) => {}
            Err(error) => log_line::warn(&format!("Waits are not counted: {error}.")),
        }
    }

    /// Returns the requests that passed the layer, for the metrics.
    pub(crate) fn requests(&self) -> metrics::Requests {
        metrics::Requests {
            in_flight: self.profiler.in_flight(),
            latencies: self.profiler.latencies(),
            waits: self.counts.clone(),
        }
    }

    /// Samples the requests in flight for `duration`, `captures` a second or the default.
    pub(crate) async fn record(
        &self,
        duration: Duration,
        captures: Option<u32>,
    ) -> Result<Arc<Profile>, EndpointError> {
        self.take(ProfileOptions::lasting(duration), captures, Duration::ZERO)
            .await
    }

    /// Samples the requests in flight for `duration`, as soon as no other profile is being taken, such as that of an
    /// incident.
    pub(crate) async fn record_within(
        &self,
        patience: Duration,
        duration: Duration,
    ) -> Result<Arc<Profile>, EndpointError> {
        self.take(ProfileOptions::lasting(duration), None, patience)
            .await
    }

    /// Samples as [`record`](Self::record) does, and times every request that begins meanwhile.
    pub(crate) async fn record_tail(
        &self,
        duration: Duration,
        captures: Option<u32>,
        percentile: Percentile,
    ) -> Result<Arc<Profile>, EndpointError> {
        let options = ProfileOptions::lasting(duration).tail(percentile);
        self.take(options, captures, Duration::ZERO).await
    }

    async fn take(
        &self,
        options: ProfileOptions,
        captures: Option<u32>,
        patience: Duration,
    ) -> Result<Arc<Profile>, EndpointError> {
        let captures = captures.unwrap_or(ProfileOptions::DEFAULT_RATE);
        let duration = options.duration;
        within(1..=100_000, captures, "captures", duration, 1)?;
        let options = options.captures_per_second(captures);
        memory_left::is_enough()?;
        // The permit is held until the names are looked up, even if the client hangs up before.
        let permit = permit::waits_within(patience).await?;
        match self.profiler.profile_holding(options, permit).await {
            Ok(profile) => Ok(self.last.keep(profile)),
            Err(ProfileError::Busy) => Err(EndpointError::Busy("await profile")),
            Err(ProfileError::Thread(error)) => Err(no_thread(&error)),
            Err(other) => Err(EndpointError::failed(other)),
        }
    }
}

/// Permit to look up names for the counts of waits.
struct Names {
    _permit: Permit,
}

impl Names {
    /// Returns the permit, or None if memory is scarce, or if a heap profile is being taken.
    fn permit() -> Option<Self> {
        memory_left::is_enough().ok()?;
        let permit = permit::names().ok()?;
        Some(Self { _permit: permit })
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        memory_left::give_back();
    }
}
