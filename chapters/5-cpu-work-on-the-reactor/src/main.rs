//! Chapter 5: CPU work on the reactor thread.
//! `cargo run -p chapter5 [-- VARIANT]`; the book says what each variant is for.

mod exercise;
mod multi_thread;
mod problem;
mod rayon;
mod solution;
mod unbounded;

use axum::Router;
use lab::{Lab, Options, Work};
use tokio::runtime::Runtime;

#[rustfmt::skip]
const VARIANTS: &[&str] = &["problem", "exercise", "solution", "multi-thread", "rayon", "unbounded"];

fn main() -> Result<(), lab::Error> {
    // Read before there is a runtime: the variants differ in theirs.
    let options = Options::read("chapter5", VARIANTS);
    match options.variant() {
        "problem" => serve(options, &problem::runtime()?, problem::routes),
        "multi-thread" => serve(options, &multi_thread::runtime()?, multi_thread::routes),
        "unbounded" => serve(options, &unbounded::runtime()?, unbounded::routes),
        "rayon" => serve(options, &rayon::runtime()?, rayon::routes),
        "solution" => serve(options, &solution::runtime()?, solution::routes),
        _ => serve(options, &exercise::runtime()?, exercise::routes),
    }
}

fn serve(options: Options, on: &Runtime, routes: fn(Work) -> Router) -> Result<(), lab::Error> {
    on.block_on(async {
        let lab = Lab::open(options)?;
        lab.heartbeat();
        let work = lab.work(std::time::Duration::from_millis(4));
        lab.serve(routes(work)).await
    })
}
