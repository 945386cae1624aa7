//! The first of the five stages, from chapter 6: one runtime for all CPUs, and one web server.

use std::sync::LazyLock;

use axum::Router;
use axum::routing::post;
use lab::{Lab, Options};
use tokio::runtime::Builder;

use crate::texts::Texts;

/// The texts that no body may begin with, in memory once.
static TEXTS: LazyLock<Texts> = LazyLock::new(Texts::build);

/// What `#[tokio::main]` and `axum::serve` make.
///
/// # Errors
///
/// When no runtime can be had, or the address is taken.
pub fn serve(options: Options) -> Result<(), lab::Error> {
    LazyLock::force(&TEXTS);
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let lab = Lab::open(options)?;
        lab.serve(routes()).await
    })
}

/// `POST /check` answers whether the body begins with one of the texts: `true` or `false`.
fn routes() -> Router {
    Router::new().route("/check", post(check))
}

async fn check(body: String) -> String {
    TEXTS.any_begins(&body).to_string()
}
