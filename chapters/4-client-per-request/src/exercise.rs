//! Exercise: open connections once, not once a request.
//!
//! An HTTP client is more than a function that sends. It owns what its next
//! request can use again: connections that are still open, and everything that
//! was loaded so that new ones can be trusted. All of it goes when the client is
//! dropped. Find out how long the client of `io` lives, and who could own it
//! instead.
//!
//! Change the code below so that requests share connections to the upstream.
//! Each must be answered as before, and each must still ask the upstream.
//!
//!     cargo workshop check 4       is it fixed?
//!     cargo workshop hint 4        the next hint
//!     cargo workshop solution 4    one way to do it, as a diff
//!     cargo workshop reset 4       start over (your file is kept aside)

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
