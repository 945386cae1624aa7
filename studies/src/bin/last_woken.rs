//! Wait of a task that a worker woke last before it computed: `last-woken.md`.
//!
//! One user asks chapter 5's variants for work, which sends to another task before or after it computes. Pings ask that
//! task, and other workers are idle. The variants take turns.
//!
//! `cargo run -p studies --bin last_woken -- 6` (rounds); needs two CPUs

use std::time::Duration;

use children::cpus;
use course::bench::server::Server;
use engine::traffic::Traffic;
use statistics::figures::{self, milliseconds};
use studies::Failed;

const VARIANTS: [(&str, &str); 3] = [
    ("send-first", "sends, then computes"),
    ("send-then-yield", "sends, yields, then computes"),
    ("send-last", "computes, then sends"),
];
const ROUND: Duration = Duration::from_secs(4);

/// Times of a round in milliseconds.
struct Times {
    median: f64,
    p99: f64,
    heartbeat_p99: f64,
}

fn main() -> Result<(), Failed> {
    let rounds = studies::argument(1, 6)?;
    if cpus::count() < 2 {
        return Err("one CPU has one worker: no other could take the task".into());
    }
    studies::compile(&[5])?;
    let mut all: [Vec<Times>; 3] = Default::default();
    for round in 0..rounds {
        for place in 0..VARIANTS.len() {
            let turn = (round + place) % VARIANTS.len();
            let server = studies::start(5, VARIANTS[turn].0, &[], &[])?;
            all[turn].push(ping(&server)?);
        }
    }
    println!(
        "| the handler | variant | median of a ping | 99th percentile | heartbeat late, 99th percentile |"
    );
    println!("| --- | --- | ---: | ---: | ---: |");
    for ((variant, name), times) in VARIANTS.iter().zip(&all) {
        println!(
            "| {name} | `{variant}` | {} | {} | {} |",
            middle(times, |times| times.median),
            middle(times, |times| times.p99),
            middle(times, |times| times.heartbeat_p99)
        );
    }
    println!(
        "\nMedians of {} rounds of {} s; one user, 100 pings a second, {} workers.",
        figures::count(rounds as f64),
        ROUND.as_secs(),
        cpus::count()
    );
    studies::print_provenance("A process of its own for each round");
    Ok(())
}

/// Puts the load of one user on a server.
fn ping(server: &Server) -> Result<Times, Failed> {
    let file = studies::chapter_file(5)?;
    let scenario = file.scenario("one_user").ok_or("no such scenario")?;
    let load = Traffic {
        duration: ROUND,
        ..file.load_of(scenario)
    };
    let outcome = studies::load(server, &load, &[])?;
    let pings = outcome.bystander.ok_or("nobody asked for pings")?;
    let late = server.metrics()?.get("reactor_stall_p99_seconds");
    Ok(Times {
        median: pings.latency.at(0.5).ok_or("no ping was answered")?,
        p99: pings.latency.at(0.99).ok_or("no ping was answered")?,
        heartbeat_p99: 1e3 * late.ok_or("no heartbeat")?,
    })
}

/// Returns the median of the rounds, in words.
fn middle(rounds: &[Times], time: fn(&Times) -> f64) -> String {
    let times: Vec<f64> = rounds.iter().map(time).collect();
    milliseconds(studies::quantile(&times, 0.5))
}
