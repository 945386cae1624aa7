//! The other strategies, each as a variant of its own.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Query, State};
use axum::routing::get;
use chapter8::by_query;
use chapter8::{Asked, Service, Strategy};
use tokio::sync::Semaphore;

/// The problem's routes, with `strategy` running what blocks, for at most so many bodies at once.
pub(crate) fn routes(service: Service, strategy: Strategy, bodies: usize) -> Router {
    let bodies = Arc::new(Semaphore::new(bodies));
    let summarize = async move |State(service): State<Service>, Query(asked): Query<Asked>| {
        let _permit = bodies.acquire().await;
        by_query::summarize(service, asked, strategy).await
    };
    Router::new()
        .route("/summarize", get(summarize))
        .route("/ping", get(async || "pong"))
        .with_state(service)
}
