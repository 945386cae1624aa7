//! The solution: two threads write and read the files, the reactor's own does neither, and no more
//! bodies are fetched at once than those two keep up with.

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Query, State};
use axum::routing::get;
use chapter8::{Asked, Error, Service};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

// ANCHOR: routes
/// `GET /summarize` fetches a body and answers with its highest byte and its length; `GET /ping`
/// answers at once.
pub(crate) fn routes(service: Service) -> Router {
    let limits = Limits::new();
    Router::new()
        .route("/summarize", get(summarize))
        .route("/ping", get(async || "pong"))
        .with_state((service, limits))
}
// ANCHOR_END: routes

// ANCHOR: summarize
async fn summarize(
    State((service, limits)): State<(Service, Limits)>,
    Query(asked): Query<Asked>,
) -> Result<String, Error> {
    // A request that waits here has fetched nothing yet, and holds nothing.
    let _permit = limits.bodies.acquire().await;
    let mut body = service.bodies.fetch(asked.bytes).await?;
    // In memory while it is small, in a file once it is large.
    let mut kept = service.keep();
    loop {
        let batch = body.batch(BATCH).await?;
        if batch.is_empty() {
            break;
        }
        kept = limits.block(move || kept.with(batch)).await?;
    }
    let summary = limits.block(move || kept.summary()).await?;
    Ok(summary.to_string())
}
// ANCHOR_END: summarize

// ANCHOR: limits
/// Bodies at once: for each thread one that it works on, and the next.
const CONCURRENT_BODIES: usize = 2 * THREADS;

/// Threads that may wait for the disk at once.
const THREADS: usize = 2;

/// Bytes that are off-loaded to another thread at once. To off-load costs some microseconds, however
/// many bytes it is, and each body holds so many bytes while it waits for a thread.
const BATCH: usize = 256 * 1024;

/// Concurrency limits.
#[derive(Debug, Clone)]
struct Limits {
    bodies: Arc<Semaphore>,
    threads: Arc<Semaphore>,
}

impl Limits {
    fn new() -> Self {
        Self {
            bodies: Arc::new(Semaphore::new(CONCURRENT_BODIES)),
            threads: Arc::new(Semaphore::new(THREADS)),
        }
    }

    /// Waits until a thread is free, then for the work that it does.
    async fn block<T, F>(&self, work: F) -> Result<T, Error>
    where
        F: FnOnce() -> io::Result<T> + Send + 'static,
        T: Send + 'static,
    {
        let permit = Arc::clone(&self.threads).acquire_owned().await;
        let done = spawn_blocking(move || {
            // Returned when the work is done, not when the request is given up.
            let _permit = permit;
            work()
        });
        Ok(done.await.map_err(|_| Error::Panicked)??)
    }
}
// ANCHOR_END: limits
