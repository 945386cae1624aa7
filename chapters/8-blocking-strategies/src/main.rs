//! Chapter 8: blocking strategies, and where a large body lives.
//! `cargo run -p chapter8 [-- VARIANT]`; the book says what each variant is for.

mod exercise;
mod named;
mod problem;
mod solution;

use chapter8::{Service, Strategy, by_query};
use clap::ValueEnum;
use lab::Lab;
use tokio::sync::Semaphore;

#[derive(Clone, Copy, ValueEnum)]
enum Variant {
    Problem,
    Exercise,
    Solution,
    FewAtOnce,
    Permit,
    Dispatch,
    SpawnBlocking,
}

/// Threads of the pool, or permits, of the strategies that are named in a URL or by a variant.
const EXTRA: usize = 2;

/// Bodies at once in the variant that limits them and does nothing else: as many as in the solution.
/// The reactor's thread still writes and reads their files.
const CONCURRENT_BODIES: usize = 4;
const UNLIMITED: usize = Semaphore::MAX_PERMITS;

// One worker thread: what blocks it blocks every request. Several can all be blocked as easily.
#[tokio::main(worker_threads = 1)]
async fn main() -> Result<(), lab::Error> {
    let (variant, lab) = Lab::start("chapter8")?;
    lab.heartbeat();
    let service = Service::new(&lab.upstream()?, lab.files(), EXTRA);
    let routes = match variant {
        Variant::Problem => problem::routes(service.clone()),
        Variant::Exercise => exercise::routes(service.clone()),
        Variant::Solution => solution::routes(service.clone()),
        Variant::FewAtOnce => named::routes(service.clone(), Strategy::Direct, CONCURRENT_BODIES),
        Variant::Permit => named::routes(service.clone(), Strategy::Permit, UNLIMITED),
        Variant::Dispatch => named::routes(service.clone(), Strategy::Dispatch, UNLIMITED),
        Variant::SpawnBlocking => {
            named::routes(service.clone(), Strategy::SpawnBlocking, UNLIMITED)
        }
    };
    lab.serve(by_query::or_else(service, routes)).await
}
