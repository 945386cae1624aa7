//! The solution: other threads wait for the archive, a part at a time.

use axum::Router;
use axum::extract::{Query, State};
use axum::routing::get;
use chapter8::{BodyQuery, Error, Service, Summary, ping};
use tokio::task::spawn_blocking;

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
    Query(query): Query<BodyQuery>,
) -> Result<Summary, Error> {
    let mut body = service.bodies.fetch(query.bytes).await?;
    let mut kept = service.archive.create();
    while let Some(part) = body.part().await? {
        kept = spawn_blocking(move || kept.append(&part)).await??;
    }
    let summary = spawn_blocking(move || kept.summary()).await??;
    Ok(summary)
}
// ANCHOR_END: summarize
