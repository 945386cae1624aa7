//! In the place of `threads`, where that cannot be.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::error::EndpointError;
use crate::finding::Finding;
use crate::last::Last;

/// There is none.
#[derive(Debug, Serialize)]
pub(crate) enum ThreadProfile {}

impl ThreadProfile {
    pub(crate) fn findings(&self, _: f64) -> Vec<Finding> {
        match *self {}
    }

    pub(crate) fn computing(&self) -> Option<String> {
        match *self {}
    }

    pub(crate) fn at_work_on_blocking_threads(&self) -> Option<String> {
        match *self {}
    }

    pub(crate) fn note(&self) -> Option<&str> {
        match *self {}
    }

    pub(crate) fn folded(&self, _: bool, _: bool) -> String {
        match *self {}
    }

    pub(crate) fn flamegraph(&self, _: bool, _: bool) -> Result<String, EndpointError> {
        match *self {}
    }
}

#[derive(Debug, Default)]
pub(crate) struct ThreadProfiler {
    pub(crate) last: Last<ThreadProfile>,
}

impl ThreadProfiler {
    #[allow(clippy::unused_async)] // one signature for both
    pub(crate) async fn record(&self, _: Duration) -> Result<Arc<ThreadProfile>, EndpointError> {
        Err(EndpointError::Unsupported(
            "stacks of threads need Linux on x86-64 or aarch64, and the feature `cpu` of debug-endpoints; elsewhere use \
             a debugger",
        ))
    }
}
