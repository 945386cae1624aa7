//! The solution: two threads write and read the files, and the reactor's own does neither.

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Query, State};
use axum::routing::get;
use chapter8::{Asked, Refusal, Service};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

// ANCHOR: routes
/// `GET /summarize` fetches a body and answers with its highest byte and its length; `GET /ping`
/// answers at once.
pub(crate) fn routes(service: Service) -> Router {
    let disk = Disk::new();
    Router::new()
        .route("/summarize", get(summarize))
        .route("/ping", get(async || "pong"))
        .with_state((service, disk))
}
// ANCHOR_END: routes

// ANCHOR: summarize
async fn summarize(
    State((service, disk)): State<(Service, Disk)>,
    Query(asked): Query<Asked>,
) -> Result<String, Refusal> {
    let mut body = service.bodies.fetch(asked.bytes).await?;
    // In memory while it is small, in a file once it is large.
    let mut kept = service.keep();
    loop {
        let batch = body.batch(BATCH).await?;
        if batch.is_empty() {
            break;
        }
        kept = disk.run(move || kept.with(batch)).await?;
    }
    let summary = disk.run(move || kept.summary()).await?;
    Ok(summary.to_string())
}
// ANCHOR_END: summarize

// ANCHOR: disk
/// Threads that may wait for the disk at once.
const THREADS: usize = 2;

/// Bytes that are handed over at once. A hand-over costs some microseconds, whatever is in it, and
/// each request holds so many bytes while it waits for its turn.
const BATCH: usize = 256 * 1024;

/// Permission to block, for [`THREADS`] at a time.
#[derive(Debug, Clone)]
struct Disk {
    turns: Arc<Semaphore>,
}

impl Disk {
    fn new() -> Self {
        let turns = Arc::new(Semaphore::new(THREADS));
        Self { turns }
    }

    /// Waits for a turn, then for the work on another thread.
    async fn run<T, F>(&self, work: F) -> Result<T, Refusal>
    where
        F: FnOnce() -> io::Result<T> + Send + 'static,
        T: Send + 'static,
    {
        let turn = Arc::clone(&self.turns).acquire_owned().await;
        let done = spawn_blocking(move || {
            // Returned when the work is done, not when the request is given up.
            let _turn = turn;
            work()
        });
        Ok(done.await.map_err(|_| Refusal::Panicked)??)
    }
}
// ANCHOR_END: disk
