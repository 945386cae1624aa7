//! Rates at which a service begins to make its requests wait, and the requests that wait: `rate-sweep.md`.
//!
//! Chapter 5's problem and solution are asked for work on a schedule, even or random, at a rate that
//! rises in steps, and for pings beside it. Each step has a server of its own, so that none inherits the queue of the
//! one before.
//!
//! `cargo run -p studies --bin rate_sweep -- 5 [random]` (seconds)

use std::time::Duration;

use course::measurement::load::Exchange;
use engine::figures;
use engine::outcome::Latency;
use engine::placement::Placement;
use engine::traffic::{Arrivals, Paced, Spacing, Traffic};
use studies::Failed;

/// The published rates, in larger steps.
const RATES: [u32; 12] = [20, 50, 80, 110, 140, 170, 200, 230, 260, 290, 320, 350];
const VARIANTS: [&str; 2] = ["problem", "solution"];
/// Enough connections that no request waits for one.
const CONNECTIONS: u32 = 1_000;
const PINGS_PER_SECOND: f64 = 100.0;

fn main() -> Result<(), Failed> {
    let seconds = studies::argument(1, 5)?;
    let arrivals: String = studies::argument(2, "even".to_owned())?;
    let spacing = match arrivals.as_str() {
        "even" => Spacing::Even,
        "random" => Spacing::Poisson,
        other => return Err(format!("arrivals are `even` or `random`, not `{other}`").into()),
    };
    studies::compile(&[5])?;
    let placement = Placement::apart();
    let heads = VARIANTS.map(|variant| {
        format!(" {variant}: answered per second | {variant}, request | {variant}, ping |")
    });
    println!("| asked per second |{}", heads.concat());
    println!("| ---: |{}", " ---: |".repeat(3 * VARIANTS.len()));
    for rate in RATES {
        print!("| {rate} |");
        for variant in VARIANTS {
            let server = studies::start(5, variant, &placement.server, &[])?;
            let load = Traffic {
                arrivals: Arrivals::Open {
                    per_second: rate.into(),
                    spacing,
                },
                bystander: Some(Paced {
                    route: Exchange::get("/ping", "pong").route(1.0),
                    per_second: PINGS_PER_SECOND,
                    spacing: Spacing::Even,
                }),
                warm_up: Duration::from_secs(1),
                duration: Duration::from_secs(seconds),
                ..Exchange::get("/data", "4").by(CONNECTIONS)
            };
            let outcome = studies::load(&server, &load, &placement.generator)?;
            let pings = outcome.bystander.as_ref().ok_or("nobody asked for pings")?;
            print!(
                " {} | {} | {} |",
                figures::count(outcome.requests_per_second.round()),
                p99(&outcome.latency),
                p99(&pings.latency),
            );
        }
        println!();
    }
    studies::print_provenance(&format!(
        "99th percentiles, counted from the due moment, of {seconds} s at each rate, {arrivals} \
         arrivals, beside {PINGS_PER_SECOND} pings a second"
    ));
    Ok(())
}

/// The 99th percentile, or what it is above where too many requests had no answer at the end.
fn p99(latency: &Latency) -> String {
    let is_bound = |latency: &Latency| latency.point(0.99).is_some_and(|p99| p99.is_lower_bound);
    let over = figures::over(is_bound(latency));
    format!("{over}{}", studies::milliseconds(latency.at(0.99)))
}
