//! Chapter 10: a queue without an end.
//! `cargo run -p chapter10 [-- VARIANT]`; the book says what each variant is for.

mod exercise;
mod others;
mod problem;
mod quotes;
mod solution;

use clap::ValueEnum;
use lab::{Lab, Uses};

use crate::quotes::{CALL, Quotes};

#[derive(Clone, Copy, ValueEnum)]
enum Variant {
    Problem,
    Exercise,
    Solution,
    Cancelled,
    Timeout,
    Deadline,
    LastFirst,
    Tower,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (variant, lab) = Lab::start("chapter10", &[Uses::Database])?;
    let quotes = Quotes::new(lab.database(CALL), lab.data_seed());
    let routes = match variant {
        Variant::Problem => problem::routes(quotes),
        Variant::Exercise => exercise::routes(quotes),
        Variant::Solution => solution::routes(quotes),
        Variant::Cancelled => others::cancelled::routes(quotes),
        Variant::Timeout => others::timeout::routes(quotes),
        Variant::Deadline => others::deadline::routes(quotes),
        Variant::LastFirst => others::last_first::routes(quotes),
        Variant::Tower => others::tower::routes(quotes),
    };
    Ok(lab.serve(routes).await?)
}
