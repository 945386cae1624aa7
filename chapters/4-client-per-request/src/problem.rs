//! The problem: every request builds a client of its own.

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use lab::Upstream;
use reqwest::Client;

use crate::answers::{self, BadGateway, Message, TIMEOUT};

// ANCHOR: routes
/// `GET /io` passes on what the upstream answers; `GET /static` asks nobody.
pub(crate) fn routes(upstream: Upstream) -> Router {
    Router::new()
        .route("/io", get(io))
        .route("/static", get(answers::at_once))
        .with_state(upstream)
}
// ANCHOR_END: routes

// ANCHOR: io
async fn io(State(upstream): State<Upstream>) -> Result<Json<Message>, BadGateway> {
    let client = Client::new();
    let request = client.get(upstream.url()).timeout(TIMEOUT);

    let response = request.send().await?.error_for_status()?;
    let message = response.json().await?;
    Ok(Json(message))
}
// ANCHOR_END: io
