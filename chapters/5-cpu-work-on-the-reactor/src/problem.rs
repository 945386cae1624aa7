//! The problem: a request computes on the thread that accepts, reads and writes for all of them.

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use lab::Work;
use tokio::runtime::{Builder, Runtime};

// ANCHOR: runtime
/// A runtime of one thread, which does everything.
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
        .with_state(work)
}
// ANCHOR_END: routes

// ANCHOR: data
async fn data(State(work): State<Work>) -> String {
    let result = work.run();
    result.to_string()
}
// ANCHOR_END: data
