//! The other half: a worker stays on its CPU, but the texts lie where they were first written.

use std::sync::LazyLock;

use axum::Router;
use axum::routing::post;
use many_cpus::SystemHardware;

use crate::team::Team;
use crate::texts::Texts;

// ANCHOR: texts
/// The texts that no body may begin with, in memory once.
static TEXTS: LazyLock<Texts> = LazyLock::new(Texts::build);
// ANCHOR_END: texts

// ANCHOR: start
/// Starts a worker for each CPU, which stays there.
pub fn start() -> Team {
    LazyLock::force(&TEXTS);
    let processors = SystemHardware::current().processors();
    let team = Team::of(processors.len());
    let joining = team.clone();
    processors.spawn_threads(move |_| joining.join(&routes()));
    team
}
// ANCHOR_END: start

// ANCHOR: check
/// `POST /check` answers whether the body begins with one of the texts: `true` or `false`.
fn routes() -> Router {
    Router::new().route("/check", post(check))
}

async fn check(body: String) -> String {
    TEXTS.any_begins(&body).to_string()
}
// ANCHOR_END: check
