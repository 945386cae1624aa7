//! Exercise: let every worker read the texts from its own NUMA node.
//!
//! A CPU reaches the memory of its own node sooner than another node's. Memory lies
//! where it was first written. Here the main thread writes the texts, so they lie
//! on one node, and on a machine with four of them three workers out of four read
//! across. Besides, the scheduler may move a worker to another node.
//!
//! Change `TEXTS`, `start` and `check` below so that each node has its own copy,
//! written by a worker of that node, and so that each worker stays on one CPU.
//! Every request must still go through all texts. The main thread accepts connections,
//! and stays free to run on any CPU.
//!
//! The crates `many_cpus` and `region_cached` are there for it. They call a CPU a
//! processor and a NUMA node a memory region. What you need of them is
//! `ProcessorSet::spawn_threads`, `region_cached!` and `with_cached`.
//!
//!     cargo workshop check 7       is it fixed?
//!     cargo workshop hint 7        the next hint
//!     cargo workshop solution 7    one way to do it, as a diff
//!     cargo workshop reset 7       start over (your file is kept aside)

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
