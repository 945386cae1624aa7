//! Cost of profiles while they are taken: `profiling-cost.md`.
//!
//! Chapter 1's solution with so many users who never pause that its CPU is full, rounds with
//! and without a profile in turn (ABBA), a fresh server each. The ratio is that of throughputs,
//! with over without. A service that has CPU time to spare loses nothing at all.
//!
//! `cargo run -p studies --bin profiling_cost -- 16 2` (pairs, seconds)

use std::time::Duration;

use course::measurement::load::Exchange;
use engine::load::ask::get;
use engine::placement::Placement;
use engine::traffic::Traffic;
use statistics::figures::{count, percent};
use studies::Failed;

/// Little's law allows these users five times what one CPU answers.
const USERS: u32 = 5_000;
const PROFILES: [(&str, &str); 3] = [
    ("CPU, 99 samples a second", "/debug/pprof/profile?"),
    (
        "await, 200 captures a second (the default)",
        "/debug/await?",
    ),
    (
        "await, 2,000 captures a second",
        "/debug/await?captures=2000&",
    ),
];

fn main() -> Result<(), Failed> {
    let (pairs, seconds) = (studies::argument(1, 8)?, studies::argument(2, 3)?);
    studies::compile(&[1])?;
    println!("| profile | throughput, with against without | 95 % interval |");
    println!("| --- | ---: | ---: |");
    for (name, path) in PROFILES {
        let compared = studies::compare(pairs, |is_profiled| {
            round(if is_profiled { Some(path) } else { None }, seconds)
        })?;
        let (low, high) = compared.interval;
        let (ratio, low, high) = (percent(compared.ratio), percent(low), percent(high));
        println!("| {name} | {ratio} | {low} to {high} |");
    }
    let users = count(USERS.into());
    studies::print_provenance(&format!(
        "{pairs} pairs of rounds of {seconds} s, chapter 1's solution, {users} users"
    ));
    Ok(())
}

/// Requests per second of a fresh server, profiled for the whole recorded span or not at all.
fn round(profile: Option<&str>, seconds: u32) -> Result<f64, Failed> {
    let placement = Placement::apart();
    let server = studies::start(1, "solution", &placement.server, &[])?;
    let warm_up = Duration::from_millis(500);
    let load = Traffic {
        warm_up,
        duration: Duration::from_secs(seconds.into()),
        ..Exchange::get("/read", "6").by(USERS)
    };
    let begin = engine::load::ramp(&load) + warm_up / 2;
    let admin = server.admin();
    // Longer than the recorded span: resolving symbols comes after it.
    let profile = profile.map(|path| {
        let path = format!("{path}seconds={}", seconds + 1);
        std::thread::spawn(move || {
            std::thread::sleep(begin);
            get(admin, &path, Duration::from_secs(60))
        })
    });
    let outcome = studies::load(&server, &load, &placement.generator)?;
    if let Some(profile) = profile {
        profile.join().map_err(|_| "the profile panicked")??;
    }
    Ok(outcome.requests_per_second)
}
