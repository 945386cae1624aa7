//! Profiles of what threads do, blocked ones too; the last is kept. Linux only.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::profile::ThreadProfile;
use super::sampler;
use crate::error::EndpointError;
use crate::last::Last;
use crate::permit;

/// Takes profiles and remembers the last.
#[derive(Debug, Default)]
pub(crate) struct ThreadProfiler {
    pub(crate) last: Last<ThreadProfile>,
}

impl ThreadProfiler {
    /// Looks at all threads for `duration`, from a new one. Dropping the future ends it.
    pub(crate) async fn record(
        &self,
        duration: Duration,
    ) -> Result<Arc<ThreadProfile>, EndpointError> {
        let permit = permit::threads()?;
        let (sender, receiver) = oneshot::channel();
        let thread = std::thread::Builder::new().name("thread-profiles".to_owned());
        let thread = thread.spawn(move || {
            let samples = sampler::sample(duration, &|| sender.is_closed());
            if !sender.is_closed() {
                let profile = ThreadProfile::new(samples, duration);
                drop(permit);
                let _ = sender.send(profile);
            }
        });
        thread.map_err(EndpointError::failed)?;
        let profile = receiver.await.map_err(EndpointError::failed)?;
        Ok(self.last.keep(profile))
    }
}
