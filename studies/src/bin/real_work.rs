//! Chapter 5's fault and fix with real work, a document that `serde_json` reads and writes: `real-work.md`.
//!
//! `cargo run -p studies --bin real_work -- 10` (seconds for each variant)

use std::time::Duration;

use engine::placement::Placement;
use engine::traffic::Traffic;
use statistics::figures::{self, milliseconds};
use studies::Failed;

/// Variants, and what their work is.
const VARIANTS: [(&str, &str); 4] = [
    ("problem", "arithmetic"),
    ("solution", "arithmetic"),
    ("json", "JSON"),
    ("json-pooled", "JSON"),
];

fn main() -> Result<(), Failed> {
    let seconds = studies::argument(1, 10)?;
    studies::compile(&[5])?;
    let file = studies::chapter_file(5)?;
    let load = Traffic {
        duration: Duration::from_secs(seconds),
        ..file.load_of(file.effect_scenario())
    };
    let users = load.users;
    let placement = Placement::apart();
    println!(
        "| variant | work | CPU time of a piece | {users} of them | median of a ping | requests a second |"
    );
    println!("| --- | --- | ---: | ---: | ---: | ---: |");
    for (variant, work) in VARIANTS {
        let server = studies::start(5, variant, &placement.server, &[])?;
        let outcome = studies::load(&server, &load, &placement.generator)?;
        let metrics = server.metrics()?;
        let count = |name| metrics.get(name).ok_or("the server does not count");
        let piece_ms = 1e3 * count("work_cpu_seconds_total")? / count("work_runs_total")?;
        let pings = outcome.bystander.ok_or("nobody asked for pings")?;
        let ping = pings.latency.at(0.5).ok_or("no ping was answered")?;
        println!(
            "| `{variant}` | {work} | {} | {} | {} | {} |",
            milliseconds(piece_ms),
            milliseconds(piece_ms * f64::from(users)),
            milliseconds(ping),
            figures::count(outcome.requests_per_second.round())
        );
    }
    studies::print_provenance(&format!("{users} users, {seconds} s for each variant"));
    Ok(())
}
