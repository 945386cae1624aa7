//! Replacement for `sockets` on systems other than Linux.

use std::fmt;
use std::time::Duration;

use diagnosis::evidence::Connections;
use serde::Serialize;

use crate::error::EndpointError;

/// Empty type: there are no figures of sockets.
#[derive(Debug, Serialize)]
pub(crate) enum Sockets {}

impl Sockets {
    pub(crate) fn evidence(self) -> Connections {
        match self {}
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
