//! Half of the way: each node has a copy of the texts, but a worker runs where the scheduler puts it.

use std::thread;

use axum::Router;
use axum::routing::post;
use many_cpus::SystemHardware;
use region_cached::{RegionCachedExt, region_cached};

use crate::team::Team;
use crate::texts::Texts;

region_cached! {
    /// The texts that no body may begin with, in memory once for each node, and once to copy from.
    static TEXTS: Texts = Texts::build();
}

/// Starts a worker for each CPU.
pub(crate) fn start() -> Team {
    let processors = SystemHardware::current().processors();
    let team = Team::of(processors.len());
    for _ in processors.processors() {
        let team = team.clone();
        thread::spawn(move || {
            // Copies the texts into the node where this thread is now. It may be gone in a moment.
            TEXTS.with_cached(|_| ());
            team.join(&routes());
        });
    }
    team
}

/// `POST /check` answers whether the body begins with one of the texts: `true` or `false`.
fn routes() -> Router {
    Router::new().route("/check", post(check))
}

async fn check(body: String) -> String {
    TEXTS
        .with_cached(|texts| texts.any_begins(&body))
        .to_string()
}
