//! Chapter 7: NUMA locality.
//! `cargo run -p chapter7 [-- VARIANT]`; the book says what each variant is for.

mod copies;
mod exercise;
mod problem;
mod region_local;
mod solution;
mod team;
mod texts;

use clap::ValueEnum;
use lab::{Lab, Options, Uses};
use tokio::runtime::Builder;

#[derive(Clone, Copy, ValueEnum)]
enum Variant {
    Problem,
    Exercise,
    Solution,
    Copies,
    RegionLocal,
}

fn main() -> Result<(), lab::Error> {
    let (variant, options) = Options::read("chapter7", &[Uses::DataSet]);
    texts::prepare(&options)?;
    let team = match variant {
        Variant::Problem => problem::start(),
        Variant::Exercise => exercise::start(),
        Variant::Solution => solution::start(),
        Variant::Copies => copies::start(),
        Variant::RegionLocal => region_local::start(),
    };
    // The ports open when all texts are in memory.
    let queues = team.wait();
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let lab = Lab::open(options)?;
        lab.dispatch(queues).await
    })
}
