//! Replacement for `threads` on systems where threads cannot be stopped.

use std::sync::Arc;
use std::time::Duration;

pub(crate) use diagnosis::threads::ThreadProfile;

use crate::error::EndpointError;
use crate::last::Last;

#[derive(Clone, Debug, Default)]
pub(crate) struct ThreadProfiler {
    pub(crate) last: Arc<Last<ThreadProfile>>,
}

impl ThreadProfiler {
    #[allow(clippy::unused_async)] // one signature for both
    pub(crate) async fn record_within(
        &self,
        _: Duration,
        _: Duration,
    ) -> Result<Arc<ThreadProfile>, EndpointError> {
        Err(unsupported())
    }
}

/// Returns an error: only Linux has them.
pub(crate) fn take(_: Duration, _: &dyn Fn() -> bool) -> Result<ThreadProfile, EndpointError> {
    Err(unsupported())
}

fn unsupported() -> EndpointError {
    EndpointError::Unsupported(
        "stacks of threads need Linux on x86-64 or aarch64, and the feature `cpu` of debug-endpoints; elsewhere use a \
         debugger",
    )
}
