//! At which rate a service begins to make its requests wait, and whom. Prints Markdown for the book,
//! whose recorded run is `flamegraphs/measuring/rate-sweep.md`:
//!
//! ```text
//! cargo build -p chapter5
//! cargo run -p bench --example rate_sweep -- [SECONDS]
//! ```
//!
//! Chapter 5's problem and solution are asked for work on a schedule, at a rate that rises in steps,
//! and for pings beside it. Each step has a server of its own, so that none inherits the queue of the
//! one before.

mod shared;

use std::error::Error;
use std::time::Duration;

use bench::placement::Placement;
use loadgen::Settings;
use loadgen::interrupt::Interrupt;
use measurement::figures;
use measurement::load::{Arrivals, Bystander, Exchange, Load};
use measurement::outcome::Latency;

/// The published rates, in larger steps.
const RATES: [u32; 12] = [20, 50, 80, 110, 140, 170, 200, 230, 260, 290, 320, 350];
const VARIANTS: [&str; 2] = ["problem", "solution"];
/// Enough connections that no request waits for one.
const CONNECTIONS: u32 = 1_000;
const PINGS_PER_SECOND: f64 = 100.0;

fn main() -> Result<(), Box<dyn Error>> {
    let seconds = shared::argument(1, 5)?;
    let interrupt = Interrupt::new();
    let placement = Placement::apart();
    let settings = Settings {
        cpus: &placement.generator,
        ..Settings::of(&interrupt)
    };
    let mut is_optimised = true;
    let mut faults = 0;
    let heads = VARIANTS.map(|variant| {
        format!(" {variant}: answered per second | {variant}, request | {variant}, ping |")
    });
    println!("| asked per second |{}", heads.concat());
    println!("| ---: |{}", " ---: |".repeat(3 * VARIANTS.len()));
    for rate in RATES {
        print!("| {rate} |");
        for variant in VARIANTS {
            let server = shared::start("chapter5", variant, &placement.server, &interrupt)?;
            is_optimised &= server.is_optimised();
            let outcome = loadgen::run(server.service(), &load(rate, seconds), &settings)?;
            let pings = outcome.bystander.as_ref().ok_or("nobody asked for pings")?;
            faults += shared::faults(&outcome) + pings.errors.values().sum::<u64>();
            print!(
                " {} | {} | {} |",
                figures::count(outcome.requests_per_second.round()),
                p99(&outcome.latency, outcome.completed, outcome.unfinished),
                p99(&pings.latency, pings.completed, pings.unfinished),
            );
        }
        println!();
    }
    shared::print_provenance(
        &format!(
            "99th percentiles, counted from the due moment, of {seconds} s at each rate, beside \
             {PINGS_PER_SECOND} pings a second; {faults} errors"
        ),
        &format!("rate_sweep -- {seconds}"),
        is_optimised,
    );
    Ok(())
}

fn load(rate: u32, seconds: u64) -> Load {
    Load {
        arrivals: Arrivals::Open {
            per_second: rate.into(),
        },
        bystander: Some(Bystander {
            exchange: Exchange::get("/ping", "pong"),
            per_second: PINGS_PER_SECOND,
        }),
        warm_up: Duration::from_secs(1),
        duration: Duration::from_secs(seconds),
        ..Load::closed(Exchange::get("/data", "4"), CONNECTIONS)
    }
}

/// The 99th percentile; a lower limit where more than one in a hundred had no answer at the end.
fn p99(latency: &Latency, completed: u64, unfinished: u64) -> String {
    let text = latency
        .at(0.99)
        .map_or_else(|| "unknown".to_owned(), figures::milliseconds);
    if unfinished * 100 > completed + unfinished {
        format!("over {text}")
    } else {
        text
    }
}
