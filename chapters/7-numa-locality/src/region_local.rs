//! The solution with a copy less: each node builds its own, and none is kept to copy from.

use axum::Router;
use axum::routing::post;
use many_cpus::SystemHardware;
use region_local::{RegionLocalExt, region_local};

use crate::team::Team;
use crate::texts::Texts;

region_local! {
    /// The texts that no body may begin with, built once in each node and never written again.
    static TEXTS: Texts = Texts::build();
}

/// Starts a worker for each CPU, which stays there.
pub(crate) fn start() -> Team {
    let processors = SystemHardware::current().processors();
    let team = Team::of(processors.len());
    let joining = team.clone();
    processors.spawn_threads(move |_| {
        // The first worker of a node builds the texts, and memory lies where it is first written.
        TEXTS.with_local(|_| ());
        joining.join(&routes());
    });
    team
}

/// `POST /check` answers whether the body begins with one of the texts: `true` or `false`.
fn routes() -> Router {
    Router::new().route("/check", post(check))
}

async fn check(body: String) -> String {
    TEXTS
        .with_local(|texts| texts.any_begins(&body))
        .to_string()
}
