//! Replacement for `sockets` on systems other than Linux.

use std::convert::Infallible;
use std::fmt;
use std::time::Duration;

use diagnosis::evidence::Connections;
use serde::Serialize;

use crate::error::EndpointError;

/// Type without a value: there are no figures of sockets.
#[derive(Debug, Serialize)]
pub(crate) struct Sockets {
    pub(crate) seen: Connections,
    never: Infallible,
}

impl fmt::Display for Sockets {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.never {}
    }
}

#[allow(clippy::unused_async)] // one signature for both
pub(crate) async fn watch(_: Duration) -> Result<Sockets, EndpointError> {
    Err(EndpointError::Unsupported("sockets are told on Linux only"))
}
