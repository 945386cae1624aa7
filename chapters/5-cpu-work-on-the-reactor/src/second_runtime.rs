//! Another form of the solution: a second runtime computes, a task for each piece of work.

use std::sync::LazyLock;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use lab::Work;
use tokio::runtime::{Builder, Runtime};

/// `GET /data` answers with the result of the work, `GET /ping` at once.
pub(crate) fn routes(work: Work) -> Router {
    Router::new()
        .route("/data", get(data))
        .route("/ping", get(async || "pong"))
        .with_state(work)
}

// ANCHOR: runtime
/// A worker for each CPU, which computes and serves nobody.
///
/// A runtime that is dropped by a task of another one panics. This one lives as
/// long as the process.
static COMPUTING: LazyLock<Runtime> = LazyLock::new(|| {
    Builder::new_multi_thread()
        .thread_name("computing")
        .build()
        .expect("a thread for each CPU")
});

async fn data(State(work): State<Work>) -> Result<String, StatusCode> {
    let result = COMPUTING.spawn(async move { work.run() }).await;
    let result = result.map_err(|_panicked| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok(result.to_string())
}
// ANCHOR_END: runtime
