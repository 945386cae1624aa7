//! Replacement for `tasks` on systems where tasks cannot be read.

use axum::response::Response;
use serde::Deserialize;

use crate::error::EndpointError;

#[derive(Debug, Deserialize)]
pub(crate) struct Request {}

#[allow(clippy::unused_async)] // one signature for both
pub(crate) async fn answer(_: Request) -> Result<Response, EndpointError> {
    Err(EndpointError::Unsupported(
        "tasks are read on Linux, on x86-64 or aarch64, in a build of debug-endpoints with its feature `tasks`",
    ))
}
