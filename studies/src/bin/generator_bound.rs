//! Generators that can send the published load, and those that cannot: `generator-bound.md`.
//!
//! 3,000 users who pause for half a second ask chapter 1's solution, which answers in 50 ms, by three generators in
//! turn. Server and generator have a CPU each, and each run has a server of its own.
//!
//! `cargo run -p studies --bin generator_bound -- 2` (rounds), after `cargo workshop setup k6 locust`

use std::time::Duration;

use engine::outcome::GeneratorKind;
use engine::placement::Placement;
use engine::traffic::Traffic;
use statistics::figures::{count, percent};
use studies::{Failed, Target, milliseconds};

/// Time of a call.
const CALL: Duration = Duration::from_millis(50);
const GENERATORS: [GeneratorKind; 3] = [
    GeneratorKind::Embedded,
    GeneratorKind::K6,
    GeneratorKind::Locust,
];

fn main() -> Result<(), Failed> {
    let rounds = studies::argument(1, 2)?;
    studies::compile(&[1])?;
    let chapter = studies::chapter_file(1)?;
    let published = chapter.scenario("published").ok_or("no published load")?;
    let load = Traffic {
        // All of Locust's users have come by then.
        warm_up: Duration::from_secs(4),
        duration: Duration::from_secs(10),
        ..chapter.load_of(published)
    };
    let bound = f64::from(load.users) / (published.think_s + CALL.as_secs_f64());
    let placement = Placement::apart();

    println!(
        "Little's bound: {} users / ({} s + {} s) = {} requests per second.\n",
        count(load.users.into()),
        published.think_s,
        CALL.as_secs_f64(),
        count(bound),
    );
    println!(
        "| round | generator | requests per second | of the bound | median | 99th percentile | its CPU: used | waited for | generator-bound |"
    );
    println!("| ---: | --- |{} --- |", " ---: |".repeat(6));
    for round in 1..=rounds {
        for generator in GENERATORS {
            let server = studies::start(1, "solution", &placement.server, &[])?;
            let target = Target {
                chapter: 1,
                server: &server,
                cpus: &placement.generator,
            };
            let outcome = target.load_by(generator, &load)?;
            let facts = &outcome.generator;
            println!(
                "| {round} | {} {} | {} | {} | {} | {} | {} | {} | {} |",
                facts.name,
                facts.version,
                count(outcome.requests_per_second),
                percent(outcome.requests_per_second / bound),
                milliseconds(outcome.latency.at(0.5)),
                milliseconds(outcome.latency.at(0.99)),
                share(facts.cpu_share),
                share(facts.waited_share),
                if facts.is_bound() { "yes" } else { "no" },
            );
        }
    }
    studies::print_provenance(&format!("{} s each", load.duration.as_secs()));
    Ok(())
}

/// Formats a share, or says that it is unknown.
fn share(share: Option<f64>) -> String {
    match share {
        Some(share) => percent(share),
        None => "unknown".to_owned(),
    }
}
