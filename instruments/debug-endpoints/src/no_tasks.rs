//! Replacement for `tasks` on systems where tasks cannot be read.

use diagnosis::evidence::Tasks;
use serde::Deserialize;

use crate::answer::Answer;
use crate::error::EndpointError;

#[derive(Debug, Deserialize)]
pub(crate) struct Request {}

#[allow(clippy::unused_async)] // one signature for both
pub(crate) async fn answer(_: Request) -> Result<Answer, EndpointError> {
    Err(EndpointError::Unsupported(
        "tasks are read on Linux, on x86-64 or aarch64, in a build of debug-endpoints with its feature `tasks`",
    ))
}

#[allow(clippy::unused_async)] // one signature for both
pub(crate) async fn watch() -> Option<(Vec<String>, Tasks)> {
    None
}
