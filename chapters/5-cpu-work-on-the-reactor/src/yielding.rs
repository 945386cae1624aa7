//! The work stays on the reactor's thread, in a loop that yields: others wait for a step of it, not for all of it.

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use lab::Work;
use tokio::task::yield_now;

/// `GET /data` answers with the result of the work, `GET /ping` at once.
pub(crate) fn routes(work: Work) -> Router {
    Router::new()
        .route("/data", get(data))
        .route("/ping", get(async || "pong"))
        .with_state(work)
}

// ANCHOR: data
/// A fortieth of 4 ms is 100 us.
const STEPS: u64 = 40;

async fn data(State(work): State<Work>) -> String {
    let mut steps = work.in_steps(STEPS);
    loop {
        if let Some(result) = steps.run_next() {
            return result.to_string();
        }
        yield_now().await;
    }
}
// ANCHOR_END: data
