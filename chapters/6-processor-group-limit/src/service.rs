//! The service: one route, which computes for as long as a scan takes.

use axum::Router;
use axum::extract::State;
use axum::routing::post;

use crate::texts::Texts;

// ANCHOR: routes
/// `POST /check` answers whether the body begins with one of the texts: `true` or `false`.
pub(crate) fn routes(texts: Texts) -> Router {
    Router::new().route("/check", post(check)).with_state(texts)
}

async fn check(State(texts): State<Texts>, body: String) -> String {
    texts.any_begins(&body).to_string()
}
// ANCHOR_END: routes
