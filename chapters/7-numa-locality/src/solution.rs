//! The solution: each node has a copy of the texts, and workers that stay there read it.

use axum::Router;
use axum::routing::post;
use many_cpus::SystemHardware;
use region_cached::{RegionCachedExt, region_cached};

use crate::team::Team;
use crate::texts::Texts;

// ANCHOR: texts
region_cached! {
    /// The texts that no body may begin with, in memory once for each node, and once to copy from.
    static TEXTS: Texts = Texts::build();
}
// ANCHOR_END: texts

// ANCHOR: start
/// Starts a worker for each CPU, which stays there.
pub(crate) fn start() -> Team {
    let processors = SystemHardware::current().processors();
    let team = Team::of(processors.len());
    let joining = team.clone();
    processors.spawn_threads(move |_| {
        // The first worker of a node writes the copy, and memory lies where it is first written.
        TEXTS.with_cached(|_| ());
        joining.join(&routes());
    });
    team
}
// ANCHOR_END: start

// ANCHOR: check
/// `POST /check` answers whether the body begins with one of the texts: `true` or `false`.
fn routes() -> Router {
    Router::new().route("/check", post(check))
}

async fn check(body: String) -> String {
    TEXTS
        .with_cached(|texts| texts.any_begins(&body))
        .to_string()
}
// ANCHOR_END: check
