//! The problem: the texts lie where they were first written, and every worker reads them there.

use std::sync::LazyLock;
use std::thread;

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
/// Starts a worker for each CPU.
pub(crate) fn start() -> Team {
    LazyLock::force(&TEXTS);
    let processors = SystemHardware::current().processors();
    let team = Team::of(processors.len());
    for _ in processors.processors() {
        let team = team.clone();
        thread::spawn(move || team.join(&routes()));
    }
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
