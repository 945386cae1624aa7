//! Exercise: keep the reactor free while requests compute.
//!
//! A runtime runs a task until the task awaits something. Code that computes awaits
//! nothing. Until it ends, its thread accepts, reads and answers nobody, and no
//! timer of that thread fires.
//!
//! Change the code below so that no request waits for another one's work on the
//! runtime's thread, and so that no more pieces of work run at once than there are
//! CPUs. All requests must be answered as before, and every `/data` must
//! still do the work.
//!
//!     cargo workshop check 5       is it fixed?
//!     cargo workshop hint 5        the next hint
//!     cargo workshop solution 5    one way to do it, as a diff
//!     cargo workshop reset 5       start over (your file is kept aside)

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use lab::Work;
use tokio::runtime::{Builder, Runtime};

// ANCHOR: runtime
/// A runtime of one thread, which does everything.
pub(crate) fn runtime() -> std::io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}
// ANCHOR_END: runtime

// ANCHOR: routes
/// `GET /data` answers with the result of the work, `GET /ping` at once.
pub(crate) fn routes(work: Work) -> Router {
    Router::new()
        .route("/data", get(data))
        .route("/ping", get(async || "pong"))
        .with_state(work)
}
// ANCHOR_END: routes

// ANCHOR: data
async fn data(State(work): State<Work>) -> String {
    let result = work.run();
    result.to_string()
}
// ANCHOR_END: data
