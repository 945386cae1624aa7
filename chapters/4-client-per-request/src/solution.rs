//! The solution: one client, built once, in the state.

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use lab::Upstream;
use reqwest::Client;

use crate::answers::{self, BadGateway, Message, TIMEOUT};

// ANCHOR: routes
/// State for every request. To clone the client is to share its connections.
#[derive(Clone)]
struct Service {
    client: Client,
    upstream: Upstream,
}

/// `GET /io` passes on what the upstream answers; `GET /static` asks nobody.
pub(crate) fn routes(upstream: Upstream) -> Router {
    let client = Client::new();
    Router::new()
        .route("/io", get(io))
        .route("/static", get(answers::at_once))
        .with_state(Service { client, upstream })
}
// ANCHOR_END: routes

// ANCHOR: io
async fn io(State(service): State<Service>) -> Result<Json<Message>, BadGateway> {
    let Service { client, upstream } = service;
    let request = client.get(upstream.url()).timeout(TIMEOUT);

    let response = request.send().await?.error_for_status()?;
    let message = response.json().await?;
    Ok(Json(message))
}
// ANCHOR_END: io
