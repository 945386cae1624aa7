//! Chapter 5: CPU work on the reactor thread.
//! `cargo run -p chapter5 [-- VARIANT]`; the book says what each variant is for.

mod exercise;
mod json;
mod last_woken;
mod multi_thread;
mod problem;
mod rayon;
mod second_runtime;
mod solution;
mod unbounded;
mod yielding;

use std::time::Duration;

use axum::Router;
use clap::ValueEnum;
use lab::{Lab, Options, Work};
use tokio::runtime::Runtime;

#[derive(Clone, Copy, ValueEnum)]
enum Variant {
    Problem,
    Exercise,
    Solution,
    MultiThread,
    Rayon,
    SecondRuntime,
    Unbounded,
    Yielding,
    SendFirst,
    SendThenYield,
    SendLast,
    Json,
    JsonPooled,
}

fn main() -> Result<(), lab::Error> {
    // Read before there is a runtime: the variants differ in theirs.
    let (variant, options) = Options::read("chapter5", &[]);
    match variant {
        Variant::Problem => serve(options, &problem::runtime()?, problem::routes),
        Variant::Exercise => serve(options, &exercise::runtime()?, exercise::routes),
        Variant::Solution => serve(options, &solution::runtime()?, solution::routes),
        Variant::MultiThread => serve(options, &multi_thread::runtime()?, multi_thread::routes),
        Variant::Rayon => serve(options, &rayon::runtime()?, rayon::routes),
        Variant::SecondRuntime => serve(options, &solution::runtime()?, second_runtime::routes),
        Variant::Unbounded => serve(options, &unbounded::runtime()?, unbounded::routes),
        Variant::Yielding => serve(options, &problem::runtime()?, yielding::routes),
        Variant::SendFirst => serve(options, &multi_thread::runtime()?, last_woken::send_first),
        Variant::SendThenYield => serve(
            options,
            &multi_thread::runtime()?,
            last_woken::send_then_yield,
        ),
        Variant::SendLast => serve(options, &multi_thread::runtime()?, last_woken::send_last),
        Variant::Json => serve(options, &problem::runtime()?, json::inline),
        Variant::JsonPooled => serve(options, &solution::runtime()?, json::pooled),
    }
}

fn serve(options: Options, on: &Runtime, routes: fn(Work) -> Router) -> Result<(), lab::Error> {
    on.block_on(async {
        let lab = Lab::open(options)?;
        lab.heartbeat();
        let work = lab.work(Duration::from_millis(4));
        lab.serve(routes(work)).await
    })
}
