//! Heap profiles by dhat: every allocation of the whole service, by the stack that asked for it.

use std::time::Duration;

use crate::error::EndpointError;
#[cfg(feature = "heap")]
use crate::permit;

#[cfg(feature = "heap")]
#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

/// Records allocations for `duration`, and returns the JSON that dhat's viewer opens.
#[cfg(feature = "heap")]
pub(crate) async fn record(duration: Duration) -> Result<Vec<u8>, EndpointError> {
    let _one_at_a_time = permit::alone()?;
    let folder = tempfile::tempdir().map_err(|error| {
        EndpointError::Unavailable(format!(
            "a heap profile needs a file in the folder for temporary files, and none can be made in {} ({error}): make \
             it writable, or start the service with TMPDIR set to a folder that is",
            tempfile::env::temp_dir().display()
        ))
    })?;
    let file = folder.path().join("dhat-heap.json");
    // Stacks are deeper than dhat's default of 10; warp's filters alone exceed that.
    let profiler = dhat::Profiler::builder()
        .file_name(&file)
        .trim_backtraces(Some(64))
        .build();
    tokio::time::sleep(duration).await;
    drop(profiler);
    // If dhat could not write the file, it says so only on standard error.
    std::fs::read(&file)
        .map_err(|error| EndpointError::Unavailable(format!("dhat's file cannot be read: {error}")))
}

/// Returns an error: a build without the feature `heap` cannot record allocations.
#[cfg(not(feature = "heap"))]
#[allow(clippy::unused_async)] // one signature for both
pub(crate) async fn record(_: Duration) -> Result<Vec<u8>, EndpointError> {
    Err(EndpointError::Unsupported(
        "heap profiles need a build that counts allocations: build with the feature `heap`",
    ))
}
