//! What the examples that measure a chapter's server have in common.

#![allow(dead_code, reason = "no example needs all of it")]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::str::FromStr;

use bench::environment;
use bench::provenance;
use bench::server::{Launch, Server};
use loadgen::interrupt::Interrupt;
use measurement::figures;
use measurement::outcome::{Latency, Outcome};

/// The argument in this place, counted from 1, if there is one.
pub(crate) fn argument<T: FromStr>(index: usize, otherwise: T) -> Result<T, T::Err> {
    let given = std::env::args().nth(index);
    given.map_or(Ok(otherwise), |text| text.parse())
}

/// Starts a chapter's server, compiled into the folder above this example's; `cpus` as in [`Launch`].
pub(crate) fn start(
    chapter: &str,
    variant: &str,
    cpus: &[usize],
    interrupt: &Interrupt,
) -> Result<Server, Box<dyn Error>> {
    let here = std::env::current_exe()?;
    let folder = here.parent().and_then(Path::parent).ok_or("no folder")?;
    let program = folder.join(format!("{chapter}{}", std::env::consts::EXE_SUFFIX));
    let launch = Launch {
        cpus,
        ..Launch::of(&program, variant)
    };
    Ok(Server::start(&launch, interrupt)?)
}

/// Rows of percentiles, two columns.
pub(crate) fn print_percentiles(left: &Latency, right: &Latency) {
    let text = |ms: Option<f64>| ms.map_or_else(|| "unknown".to_owned(), figures::milliseconds);
    let row = |name: &str, left, right| println!("| {name} | {} | {} |", text(left), text(right));
    for (name, quantile) in [
        ("median", 0.5),
        ("90th percentile", 0.9),
        ("99th percentile", 0.99),
    ] {
        row(name, left.at(quantile), right.at(quantile));
    }
    row("largest", Some(left.max_ms), Some(right.max_ms));
}

/// Requests that got no answer or a wrong one.
pub(crate) fn faults(outcome: &Outcome) -> u64 {
    outcome.error_count() + outcome.wrong_answers
}

/// The line below the table: under which load it was measured, and how, when and where.
pub(crate) fn print_provenance(load: &str, example: &str, is_optimised: bool) {
    let machine = environment::observe(is_optimised, "dev", BTreeMap::new());
    println!(
        "\n*{load}. Measured by `cargo run -p bench --example {example}` at commit `{}` on {} (UTC): {}.*",
        provenance::checked_out(Path::new("."), "flamegraphs").in_short(),
        &provenance::now()[..10],
        machine.in_a_line(),
    );
}
