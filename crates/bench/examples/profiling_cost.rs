//! What profiles cost while they are taken. Prints Markdown for the book, whose recorded run is
//! `flamegraphs/measuring/profiling-cost.md`:
//!
//! ```text
//! cargo build -p chapter1
//! cargo run -p bench --example profiling_cost -- [PAIRS] [SECONDS]
//! ```
//!
//! Chapter 1's solution with so many users who never pause that its CPU is full, rounds with
//! and without a profile in turn (ABBA), a fresh server each. The ratio is that of throughputs,
//! with over without. A service that has CPU time to spare loses nothing at all.

mod shared;

use std::error::Error;
use std::time::Duration;

use analysis::statistics::{self, REPORTED};
use bench::placement::Placement;
use bench::server::get;
use loadgen::Settings;
use loadgen::interrupt::Interrupt;
use measurement::figures;
use measurement::load::{Exchange, Load};

/// Little's law allows these users five times what one CPU answers.
const USERS: u32 = 5_000;

fn main() -> Result<(), Box<dyn Error>> {
    let (pairs, seconds) = (shared::argument(1, 8)?, shared::argument(2, 3)?);
    println!("| profile | throughput, with against without | 95 % interval |");
    println!("| --- | ---: | ---: |");
    for (name, path) in [
        ("CPU, 99 samples a second", "/debug/pprof/profile"),
        ("await, 200 captures a second (the default)", "/debug/await"),
        (
            "await, 2,000 captures a second",
            "/debug/await?captures=2000",
        ),
    ] {
        let mut rounds = Vec::new();
        for is_profiled in statistics::abba(true, false, pairs) {
            let profile = is_profiled.then_some(path);
            rounds.push((is_profiled, round(profile, seconds)?));
        }
        let ratios: Vec<f64> = rounds
            .chunks(2)
            .map(|pair| {
                let of = |wanted| {
                    pair.iter()
                        .find(|(is_profiled, _)| *is_profiled == wanted)
                        .map_or(0.0, |r| r.1)
                };
                of(true) / of(false)
            })
            .collect();
        let ratio = statistics::mean_ratio(&ratios).ok_or("no ratio")?;
        let (low, high) = statistics::interval(&ratios, REPORTED).ok_or("too few pairs")?;
        println!(
            "| {name} | {} | {} to {} |",
            figures::percent(ratio),
            figures::percent(low),
            figures::percent(high)
        );
    }
    let users = figures::count(USERS.into());
    println!("\n*{pairs} pairs of rounds of {seconds} s, chapter 1's solution, {users} users.*");
    Ok(())
}

/// Requests per second of a fresh server, profiled for the whole recorded span or not at all.
fn round(profile: Option<&str>, seconds: u32) -> Result<f64, Box<dyn Error>> {
    let placement = Placement::apart();
    let interrupt = Interrupt::new();
    let server = shared::start("chapter1", "solution", &placement.server, &interrupt)?;
    let warm_up = Duration::from_millis(500);
    let load = Load {
        warm_up,
        duration: Duration::from_secs(seconds.into()),
        ..Load::closed(Exchange::get("/read", "6"), USERS)
    };
    let settings = Settings {
        cpus: &placement.generator,
        interrupt: &interrupt,
        progress: None,
    };
    let outcome = std::thread::scope(|scope| {
        if let Some(path) = profile {
            let admin = server.admin();
            let begin = loadgen::ramp(&load) + warm_up / 2;
            scope.spawn(move || {
                std::thread::sleep(begin);
                // Longer than the recorded span: resolving symbols comes after it.
                let and = if path.contains('?') { '&' } else { '?' };
                let path = format!("{path}{and}seconds={}", seconds + 1);
                get(admin, &path, Duration::from_secs(60))
            });
        }
        loadgen::run(server.service(), &load, &settings)
    })?;
    Ok(outcome.requests_per_second)
}
