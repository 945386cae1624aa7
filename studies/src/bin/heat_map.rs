//! Times at which the pings beside a chapter's load were slow, and the latency of each: for chapter 8
//! `heat-map-8.md`.
//!
//! Percentiles say how many pings were slow, and not whether all of them were so at the same time. Problem
//! and solution run one after the other, under the load of the chapter's effect.
//!
//! `cargo run -p studies --bin heat_map -- 5 2` (chapter, seconds)

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use engine::placement::Placement;
use engine::traffic::Traffic;
use studies::Failed;

/// Time from the start of the load to the first ping, and from the last ping to the end of the load.
const MARGIN: Duration = Duration::from_secs(1);
/// Number of pings that are due per second, whether others have come back or not.
const PER_SECOND: u32 = 200;
/// Connections that take turns: each has 640 ms until its next ping is due. One that takes longer delays
/// that one, which counts from when it was due.
const CONNECTIONS: u32 = 128;
/// Pings of a row.
const ROW: usize = 20;

fn main() -> Result<(), Failed> {
    let (number, seconds) = (studies::argument(1, 5)?, studies::argument(2, 2_u32)?);
    studies::compile(&[number])?;
    let file = studies::chapter_file(number)?;
    let scenario = file.effect_scenario();
    let load = Traffic {
        bystander: None,
        warm_up: MARGIN,
        duration: Duration::from_secs(seconds.into()) + MARGIN,
        ..file.load_of(scenario)
    };
    let placement = Placement::apart();
    let apart = 1.0 / f64::from(PER_SECOND);
    println!("| variant | due from, s | every, s | latencies of the pings, ms |");
    println!("| --- | ---: | ---: | --- |");
    for variant in ["problem", "solution"] {
        let server = studies::start(number, variant, &placement.server, &[])?;
        let pings = thread::scope(|scope| {
            let pings = scope.spawn(|| pings(server.service(), seconds * PER_SECOND));
            studies::load(&server, &load, &placement.generator)?;
            pings.join().map_err(|_| "the pings panicked")?
        })?;
        for (row, pings) in pings.chunks(ROW).enumerate() {
            let due = (row * ROW) as f64 * apart;
            let pings: Vec<String> = pings.iter().map(|ms| format!("{ms:.1}")).collect();
            println!("| {variant} | {due:.1} | {apart} | {} |", pings.join(" "));
        }
    }
    studies::print_provenance(&format!(
        "Latencies from the due moment, of {PER_SECOND} pings a second beside {} users",
        scenario.users
    ));
    Ok(())
}

/// The latencies in ms of so many pings on a schedule, in the order in which they were due.
fn pings(server: SocketAddr, count: u32) -> Result<Vec<f64>, Failed> {
    let begin = Instant::now() + MARGIN;
    let mut connections = Vec::new();
    for first in 0..CONNECTIONS {
        connections.push(thread::spawn(move || {
            pings_of_connection(server, begin, first, count)
        }));
    }
    let mut all = Vec::new();
    for connection in connections {
        all.extend(connection.join().map_err(|_| "a connection panicked")??);
    }
    all.sort_unstable_by_key(|(number, _)| *number);
    Ok(all.into_iter().map(|(_, latency)| latency).collect())
}

/// Returns the numbers and latencies of the pings on one connection: the ping `first`, and each that is `CONNECTIONS`
/// after another.
fn pings_of_connection(
    server: SocketAddr,
    begin: Instant,
    first: u32,
    count: u32,
) -> Result<Vec<(u32, f64)>, Failed> {
    // An agent keeps its connection.
    let agent = ureq::Agent::new_with_defaults();
    let mut pings = Vec::new();
    for number in (first..count).step_by(CONNECTIONS as usize) {
        let due = begin + Duration::from_secs(1) * number / PER_SECOND;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let mut answer = agent.get(format!("http://{server}/ping")).call()?;
        answer.body_mut().read_to_string()?;
        pings.push((number, due.elapsed().as_secs_f64() * 1e3));
    }
    Ok(pings)
}
