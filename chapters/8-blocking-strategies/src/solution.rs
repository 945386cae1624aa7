//! The solution: two threads write and read the files, the reactor's own does neither, and no more
//! bodies come in than those two keep up with.

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
) -> Result<String, Refusal> {
    // Who waits here has asked for nothing yet, and holds nothing.
    let _place = limits.places.acquire().await;
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
/// Bodies that come in at once: for each thread one that it works on, and the next.
const PLACES: usize = 2 * THREADS;

/// Threads that may wait for the disk at once.
const THREADS: usize = 2;

/// Bytes that are handed over at once. A hand-over costs some microseconds, whatever is in it, and
/// each body holds so many bytes while it waits for its turn.
const BATCH: usize = 256 * 1024;

/// What may happen at once.
#[derive(Debug, Clone)]
struct Limits {
    places: Arc<Semaphore>,
    turns: Arc<Semaphore>,
}

impl Limits {
    fn new() -> Self {
        Self {
            places: Arc::new(Semaphore::new(PLACES)),
            turns: Arc::new(Semaphore::new(THREADS)),
        }
    }

    /// Waits for a turn, then for the work on another thread.
    async fn block<T, F>(&self, work: F) -> Result<T, Refusal>
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
// ANCHOR_END: limits
