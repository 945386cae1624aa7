//! Heap profiles, with dhat: every allocation of the whole server, by the stack that asked for it.

use std::time::Duration;

use crate::admin_error::AdminError;

#[cfg(feature = "heap")]
#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

/// Records allocations for `duration`; yields the JSON that dhat's viewer opens, with totals
/// (`Total`, at `t-gmax` and at `t-end`) in it.
#[cfg(feature = "heap")]
pub(crate) async fn record(duration: Duration) -> Result<Vec<u8>, AdminError> {
    static RUNNING: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let _one_at_a_time = RUNNING.try_lock().map_err(|_| AdminError::Busy)?;
    let failed = |error: std::io::Error| AdminError::Failed(error.to_string());
    let folder = tempfile::tempdir().map_err(failed)?;
    let file = folder.path().join("dhat-heap.json");
    // Deeper than dhat's default of 10: warp's filters alone are deeper than that.
    let profiler = dhat::Profiler::builder()
        .file_name(&file)
        .trim_backtraces(Some(64))
        .build();
    tokio::time::sleep(duration).await;
    drop(profiler);
    std::fs::read(&file).map_err(failed)
}

/// Without the `heap` feature there is nothing to record.
#[cfg(not(feature = "heap"))]
#[allow(clippy::unused_async)] // one signature for both
pub(crate) async fn record(_: Duration) -> Result<Vec<u8>, AdminError> {
    Err(AdminError::Unsupported(
        "heap profiles need a build that counts allocations: \
         cargo run -p chapterN --features heap",
    ))
}
