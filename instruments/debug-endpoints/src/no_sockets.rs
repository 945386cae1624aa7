//! In the place of `sockets`, where that cannot be.

use std::fmt;
use std::time::Duration;

use diagnosis::Finding;
use serde::Serialize;

use crate::error::EndpointError;

/// There are none.
#[derive(Debug, Serialize)]
pub(crate) enum Sockets {}

impl Sockets {
    pub(crate) fn findings(&self, _: u64) -> Vec<Finding> {
        match *self {}
    }

    pub(crate) fn open_to_upstreams(&self) -> usize {
        match *self {}
    }
}

impl fmt::Display for Sockets {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

#[allow(clippy::unused_async)] // one signature for both
pub(crate) async fn watch(_: Duration) -> Result<Sockets, EndpointError> {
    Err(EndpointError::Unsupported("sockets are told on Linux only"))
}
