//! Chapter 8: blocking strategies, and where a large body lives.
//! `cargo run -p chapter8 [-- VARIANT]`; the book says what each variant is for.

mod exercise;
mod others;
mod problem;
mod solution;

use std::time::Duration;

use chapter8::{Bodies, Service};
use clap::ValueEnum;
use lab::{Lab, Options, Uses};
use tokio::runtime::Builder;

#[derive(Clone, Copy, ValueEnum)]
enum Variant {
    Problem,
    Exercise,
    Solution,
    FewAtOnce,
    Permit,
    Dispatch,
    PerChunk,
    PerBody,
    TokioFs,
}

/// What a ping takes with nobody else there.
const DATABASE_CALL: Duration = Duration::from_millis(50);

fn main() -> Result<(), lab::Error> {
    let (variant, options) =
        Options::read("chapter8", &[Uses::Upstream, Uses::Database, Uses::Files]);
    // ANCHOR: runtime
    let runtime = Builder::new_multi_thread()
        // What blocks it blocks every request. Several can all be blocked as easily.
        .worker_threads(1)
        // Of 512 threads nearly all would wait for the same disk.
        .max_blocking_threads(8)
        .enable_all()
        .build()?;
    // ANCHOR_END: runtime
    runtime.block_on(async {
        let lab = Lab::open(options)?;
        lab.heartbeat();
        let service = Service {
            bodies: Bodies::of(&lab.upstream(Duration::ZERO)?),
            database: lab.database(DATABASE_CALL),
            files: lab.files(),
        };
        let routes = match variant {
            Variant::Problem => problem::routes(service),
            Variant::Exercise => exercise::routes(service),
            Variant::Solution => solution::routes(service),
            Variant::FewAtOnce => others::few_at_once(service),
            Variant::Permit => others::permit(service),
            Variant::Dispatch => others::dispatch(service),
            Variant::PerChunk => others::per_chunk(service),
            Variant::PerBody => others::per_body(service),
            Variant::TokioFs => others::tokio_fs(service),
        };
        lab.serve(routes).await
    })
}
