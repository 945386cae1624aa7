//! What the stages without copies share: the texts in memory once, and the route that reads them.

use std::sync::LazyLock;

use axum::Router;
use axum::routing::post;

use crate::texts::Texts;

/// The texts that no body may begin with, in memory once.
pub(crate) static TEXTS: LazyLock<Texts> = LazyLock::new(Texts::build);

/// `POST /check` answers whether the body begins with one of the texts: `true` or `false`.
pub(crate) fn routes() -> Router {
    Router::new().route("/check", post(check))
}

async fn check(body: String) -> String {
    TEXTS.any_begins(&body).to_string()
}
