//! The other strategies, each as a variant of its own.

use axum::Router;
use axum::extract::{Query, State};
use axum::routing::get;
use chapter8::by_query;
use chapter8::{Asked, Service, Strategy};

/// The problem's routes, but whatever blocks is done by `strategy`.
pub(crate) fn routes(service: Service, strategy: Strategy) -> Router {
    let summarize = async move |State(service): State<Service>, Query(asked): Query<Asked>| {
        by_query::summarize(service, asked, strategy).await
    };
    Router::new()
        .route("/summarize", get(summarize))
        .route("/ping", get(async || "pong"))
        .with_state(service)
}
