//! The await profiler of the service, and the last profile that it took.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use await_profile::{
    AwaitProfiler, Percentile, Profile, ProfileError, ProfileOptions, RecentWaits, WaitCounts,
};

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
    /// Counts for those who look at recent waits, otherwise.
    looked_at: Arc<LookedAt>,
}

/// Time after which counting ends if nobody has asked for recent waits. The page asks every three seconds.
const UNASKED: Duration = Duration::from_secs(30);

/// Counts of waits while somebody looks at them, with the moment of the last question.
#[derive(Debug, Default)]
struct LookedAt(Mutex<Option<(WaitCounts, Instant)>>);

impl LookedAt {
    fn lock(&self) -> MutexGuard<'_, Option<(WaitCounts, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends counting once nobody has asked for `patience`.
    async fn end_after(&self, patience: Duration) {
        loop {
            let left = match &*self.lock() {
                Some((_, asked)) => patience.saturating_sub(asked.elapsed()),
                None => return,
            };
            if left.is_zero() {
                *self.lock() = None;
                return;
            }
            tokio::time::sleep(left).await;
        }
    }
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
            looked_at: Arc::default(),
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

    /// Returns the waits of the last minutes. If the service has no waits counted, counting begins with the first question,
    /// and ends once nobody has asked for half a minute.
    ///
    /// # Errors
    ///
    /// Returns an error if the service counts waits of this profiler itself, or if no thread can be started.
    pub(crate) fn recent(&self) -> Result<RecentWaits, EndpointError> {
        self.recent_for(UNASKED)
    }

    fn recent_for(&self, patience: Duration) -> Result<RecentWaits, EndpointError> {
        if let Some(counts) = &self.counts {
            return Ok(counts.recent());
        }
        let mut looked_at = self.looked_at.lock();
        if let Some((counts, asked)) = &mut *looked_at {
            *asked = Instant::now();
            return Ok(counts.recent());
        }
        let counts = match self.profiler.count_waits_holding(Names::permit) {
            Ok(counts) => counts,
            Err(ProfileError::Busy) => return Err(EndpointError::Busy("count of waits")),
            Err(ProfileError::Thread(error)) => return Err(no_thread(&error)),
            Err(other) => return Err(EndpointError::failed(other)),
        };
        let recent = counts.recent();
        *looked_at = Some((counts, Instant::now()));
        let ending = Arc::clone(&self.looked_at);
        tokio::spawn(async move { ending.end_after(patience).await });
        Ok(recent)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn waits_are_counted_only_while_somebody_asks_for_them() {
        let waits = Waits::default();
        let is_counting = || format!("{:?}", waits.profiler).contains("counting");
        assert!(!is_counting());
        let patience = Duration::from_millis(300);
        for _ in 0..3 {
            assert_eq!(waits.recent_for(patience).expect("a thread").waits, []);
            assert!(is_counting());
        }
        while is_counting() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        waits.recent_for(patience).expect("it begins again");
    }
}
