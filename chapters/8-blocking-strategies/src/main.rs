//! Chapter 8: a blocking library on the reactor.
//! `cargo run -p chapter8 [-- VARIANT]`; the book says what each variant is for.

mod exercise;
mod others;
mod problem;
mod solution;

use std::time::Duration;

use chapter8::{BLOCKING_THREADS, Service};
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
    PerBody,
    AsyncClient,
}

/// Duration of a ping without other requests.
const DATABASE_CALL: Duration = Duration::from_millis(50);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // reqwest leaves the cryptography to the program. ring is quick to compile.
    let _ = rustls::crypto::ring::default_provider().install_default();

    let uses = [Uses::Upstream, Uses::Database, Uses::Archive];
    let (variant, options) = Options::read("chapter8", &uses);
    // ANCHOR: runtime
    let runtime = Builder::new_multi_thread()
        // What blocks it blocks every request. Several can all be blocked as easily.
        .worker_threads(1)
        // Of 512 threads nearly all would wait for the same archive.
        .max_blocking_threads(BLOCKING_THREADS)
        .enable_all()
        .build()?;
    // ANCHOR_END: runtime
    runtime.block_on(async {
        let lab = Lab::open(options)?;
        lab.heartbeat();
        let upstream = lab.upstream(Duration::ZERO)?;
        let database = lab.database(DATABASE_CALL);
        let service = Service::new(upstream.url(), &lab.archive()?, database)?;
        let routes = match variant {
            Variant::Problem => problem::routes(service),
            Variant::Exercise => exercise::routes(service),
            Variant::Solution => solution::routes(service),
            Variant::FewAtOnce => others::few_at_once(service),
            Variant::Permit => others::permit(service),
            Variant::Dispatch => others::dispatch(service),
            Variant::PerBody => others::per_body(service),
            Variant::AsyncClient => others::async_client(service),
        };
        Ok(lab.serve(routes).await?)
    })
}
