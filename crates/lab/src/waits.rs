//! The await profiler of the service, and the last profile that it took.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use await_profile::{AwaitProfiler, Profile, ProfileError, ProfileOptions};

use crate::admin_error::AdminError;

/// The service's profiler and the last profile that it took.
#[derive(Debug, Clone)]
pub(crate) struct Waits {
    profiler: AwaitProfiler,
    last: Arc<Mutex<Option<Arc<Profile>>>>,
}

impl Waits {
    /// Armed, so that requests are seen that began before the profile: in a service whose requests
    /// hang, there are no others.
    pub(crate) fn new() -> Self {
        Self {
            profiler: AwaitProfiler::new().armed(),
            last: Arc::default(),
        }
    }

    pub(crate) fn profiler(&self) -> AwaitProfiler {
        self.profiler
    }

    /// Samples the requests in flight for `duration`, `captures` a second or the default.
    pub(crate) async fn record(
        &self,
        duration: Duration,
        captures: Option<u32>,
    ) -> Result<Arc<Profile>, AdminError> {
        let mut options = ProfileOptions::lasting(duration);
        if let Some(captures) = captures {
            if !(1..=100_000).contains(&captures) {
                return Err(AdminError::BadRequest(format!(
                    "captures must be from 1 to 100000 a second, not {captures}"
                )));
            }
            options = options.captures_per_second(captures);
        }
        let profile = self.profiler.profile(options).await.map_err(|e| match e {
            ProfileError::Busy => AdminError::Busy,
            other => AdminError::Failed(other.to_string()),
        })?;
        let profile = Arc::new(profile);
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&profile));
        Ok(profile)
    }

    /// The last profile taken, if any.
    pub(crate) fn last(&self) -> Option<Arc<Profile>> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.clone()
    }
}
