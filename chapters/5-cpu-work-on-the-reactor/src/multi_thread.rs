//! A step on the way: as many threads as CPUs, and each of them still computes.

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use lab::Work;
use tokio::runtime::{Builder, Runtime};

// ANCHOR: runtime
/// What `#[tokio::main]` builds: a worker thread for each CPU.
pub(crate) fn runtime() -> std::io::Result<Runtime> {
    Builder::new_multi_thread().enable_all().build()
}
// ANCHOR_END: runtime

/// `GET /data` answers with the result of the work, `GET /ping` at once.
pub(crate) fn routes(work: Work) -> Router {
    Router::new()
        .route("/data", get(data))
        .route("/ping", get(async || "pong"))
        .with_state(work)
}

async fn data(State(work): State<Work>) -> String {
    let result = work.run();
    result.to_string()
}
