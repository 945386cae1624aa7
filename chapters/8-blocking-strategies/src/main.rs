//! Chapter 8: blocking strategies, and where a large body lives.
//! `cargo run -p chapter8 [-- VARIANT]`; the book says what each variant is for.

mod exercise;
mod named;
mod problem;
mod solution;

use chapter8::{Service, Strategy, by_query};
use lab::Lab;

#[rustfmt::skip]
const VARIANTS: &[&str] =
    &["problem", "exercise", "solution", "few-at-once", "permit", "dispatch", "spawn-blocking"];

/// Extra threads, or permits, of the strategies that are named in a URL or by a variant.
const EXTRA: usize = 2;

/// Bodies at once of the variant that has a limit and nothing else: as many as in the solution.
const PLACES: usize = 4;

// One worker: what blocks it blocks everybody. Of more workers, each is blocked as easily.
#[tokio::main(worker_threads = 1)]
async fn main() -> Result<(), lab::Error> {
    let lab = Lab::start("chapter8", VARIANTS)?;
    lab.heartbeat();
    let service = Service::new(&lab.upstream()?, lab.files(), EXTRA);
    let routes = match lab.variant() {
        "problem" => problem::routes(service.clone()),
        "solution" => solution::routes(service.clone()),
        "few-at-once" => named::few_at_once(service.clone(), PLACES),
        "permit" => named::routes(service.clone(), Strategy::Permit),
        "dispatch" => named::routes(service.clone(), Strategy::Dispatch),
        "spawn-blocking" => named::routes(service.clone(), Strategy::SpawnBlocking),
        _ => exercise::routes(service.clone()),
    };
    lab.serve(by_query::or_else(service, routes)).await
}
