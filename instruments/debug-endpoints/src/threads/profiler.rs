//! Takes profiles of what threads do, and keeps the last.

use std::sync::Arc;
use std::time::Duration;

use super::profile::ThreadProfile;
use super::sampler;
use crate::error::EndpointError;
use crate::last::Last;
use crate::memory_left;
use crate::own_thread::OwnThread;
use crate::permit;

static THREAD: OwnThread = OwnThread::new("thread-profiles");

/// Takes profiles and remembers the last.
#[derive(Debug, Default)]
pub(crate) struct ThreadProfiler {
    pub(crate) last: Last<ThreadProfile>,
}

impl ThreadProfiler {
    /// Looks at all threads for `duration`. Dropping the future ends it.
    pub(crate) async fn record(
        &self,
        duration: Duration,
    ) -> Result<Arc<ThreadProfile>, EndpointError> {
        memory_left::is_enough()?;
        let permit = permit::threads()?;
        let profile = THREAD.run(move |is_awaited| {
            let samples = sampler::sample(duration, is_awaited);
            let profile = is_awaited().then(|| ThreadProfile::new(samples, duration));
            drop(permit);
            profile
        });
        let profile = profile.await?;
        let profile = profile.ok_or_else(|| EndpointError::failed("nobody waits for it"))?;
        Ok(self.last.keep(profile))
    }
}
