//! A fix with a hole: the work leaves the reactor, and nothing limits how much of it does.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use lab::Work;
use tokio::task::spawn_blocking;

pub(crate) use crate::solution::runtime;

/// `GET /data` answers with the result of the work, `GET /ping` at once.
pub(crate) fn routes(work: Work) -> Router {
    Router::new()
        .route("/data", get(data))
        .route("/ping", get(async || "pong"))
        .with_state(work)
}

// ANCHOR: data
async fn data(State(work): State<Work>) -> Result<String, StatusCode> {
    let result = spawn_blocking(move || work.run()).await;
    let result = result.map_err(|_panicked| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok(result.to_string())
}
// ANCHOR_END: data
