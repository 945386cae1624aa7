//! The solution: the work has threads of its own, and no more of them than there are CPUs.

use std::sync::Arc;
use std::thread::available_parallelism;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use lab::Work;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use tokio::task::{JoinError, spawn_blocking};

// ANCHOR: runtime
/// A runtime of one thread, which accepts, reads and writes, and computes nothing.
pub(crate) fn runtime() -> std::io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}
// ANCHOR_END: runtime

// ANCHOR: routes
/// `GET /data` answers with the result of the work, `GET /ping` at once.
pub(crate) fn routes(work: Work) -> Router {
    Router::new()
        .route("/data", get(data))
        .route("/ping", get(async || "pong"))
        .with_state(Pool::new(work))
}
// ANCHOR_END: routes

// ANCHOR: data
async fn data(State(pool): State<Pool>) -> Result<String, StatusCode> {
    let result = pool.run().await;
    let result = result.map_err(|_panicked| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok(result.to_string())
}
// ANCHOR_END: data

// ANCHOR: pool
/// Work on threads of its own, a piece for each CPU at a time.
#[derive(Clone)]
struct Pool {
    work: Work,
    permits: Arc<Semaphore>,
}

impl Pool {
    fn new(work: Work) -> Self {
        let cpus = available_parallelism().map_or(1, usize::from);
        let permits = Arc::new(Semaphore::new(cpus));
        Self { work, permits }
    }

    /// Waits for a permit, then for the work; an error if the work panicked.
    async fn run(self) -> Result<u64, JoinError> {
        let permit = self.permits.acquire_owned().await;
        let permit = permit.expect("nobody closes the semaphore");
        spawn_blocking(move || {
            // Returned when the work is done, not when the request is given up.
            let _permit = permit;
            self.work.run()
        })
        .await
    }
}
// ANCHOR_END: pool
