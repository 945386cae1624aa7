//! The other strategies, each as a variant of its own.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Query, State};
use axum::routing::get;
use chapter8::by_query;
use chapter8::{Asked, Service, Strategy};
use tokio::sync::Semaphore;

/// The problem's routes, with `strategy` running what blocks.
pub(crate) fn routes(service: Service, strategy: Strategy) -> Router {
    let summarize = async move |State(service): State<Service>, Query(asked): Query<Asked>| {
        by_query::summarize(service, asked, strategy).await
    };
    Router::new()
        .route("/summarize", get(summarize))
        .route("/ping", get(async || "pong"))
        .with_state(service)
}

/// The problem's routes with a concurrency limit on bodies. The reactor's thread still writes and reads
/// their files: one half of the solution, to see what it does alone.
pub(crate) fn few_at_once(service: Service, limit: usize) -> Router {
    let limit = Arc::new(Semaphore::new(limit));
    let summarize = async move |State(service): State<Service>, Query(asked): Query<Asked>| {
        let _permit = limit.acquire().await;
        by_query::summarize(service, asked, Strategy::Direct).await
    };
    Router::new()
        .route("/summarize", get(summarize))
        .route("/ping", get(async || "pong"))
        .with_state(service)
}
