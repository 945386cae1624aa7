//! The second of the five stages, from chapter 6: workers that share nothing, by the usual count.

use std::sync::LazyLock;
use std::thread;

use axum::Router;
use axum::routing::post;

use crate::team::Team;
use crate::texts::Texts;

/// The texts that no body may begin with, in memory once.
static TEXTS: LazyLock<Texts> = LazyLock::new(Texts::build);

/// Starts a worker for each CPU that `num_cpus` counts: on Windows those of one group.
pub fn start() -> Team {
    LazyLock::force(&TEXTS);
    let workers = num_cpus::get();
    let team = Team::of(workers);
    for _ in 0..workers {
        let team = team.clone();
        thread::spawn(move || team.join(&routes()));
    }
    team
}

/// `POST /check` answers whether the body begins with one of the texts: `true` or `false`.
fn routes() -> Router {
    Router::new().route("/check", post(check))
}

async fn check(body: String) -> String {
    TEXTS.any_begins(&body).to_string()
}
