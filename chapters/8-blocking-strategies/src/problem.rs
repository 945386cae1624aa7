//! The problem: the reactor's own thread writes and reads files.

use axum::Router;
use axum::extract::{Query, State};
use axum::routing::get;
use chapter8::{Asked, Error, Service, ping};

// ANCHOR: routes
/// `GET /summarize` fetches a body and answers with its highest byte and its length; `GET /ping`
/// asks the database whether it is there.
pub(crate) fn routes(service: Service) -> Router {
    Router::new()
        .route("/summarize", get(summarize))
        .route("/ping", get(ping))
        .with_state(service)
}
// ANCHOR_END: routes

// ANCHOR: summarize
async fn summarize(
    State(service): State<Service>,
    Query(asked): Query<Asked>,
) -> Result<String, Error> {
    let mut body = service.bodies.fetch(asked.bytes).await?;
    let mut kept = service.keep()?;
    while let Some(chunk) = body.chunk().await? {
        kept.push(&chunk)?;
    }
    let summary = kept.summary()?;
    Ok(summary.to_string())
}
// ANCHOR_END: summarize
