//! What a closed loop hides of a service that stalls now and then. Prints Markdown for the book, whose
//! recorded run is `flamegraphs/measuring/hidden-stall.md`:
//!
//! ```text
//! cargo build -p chapter5
//! cargo run -p bench --example hidden_stall -- [SECONDS]
//! ```
//!
//! Users ask chapter 5's problem for work, all of them for half of every second and none in the other
//! half. Beside them the same server is asked for pings in two ways at once: by one user who waits for
//! each answer, and on a schedule.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use bench::environment;
use bench::placement::Placement;
use bench::provenance;
use bench::server::{Launch, Server};
use loadgen::interrupt::Interrupt;
use loadgen::{GeneratorError, Settings};
use measurement::figures;
use measurement::load::{Arrivals, Exchange, Load};
use measurement::outcome::Outcome;

const USERS: u32 = 64;
const DUE_PER_SECOND: f64 = 100.0;
const PERIOD: Duration = Duration::from_secs(1);

fn main() -> Result<(), Box<dyn Error>> {
    let seconds = std::env::args()
        .nth(1)
        .map_or(Ok(20), |text| text.parse())?;
    let interrupt = Interrupt::new();
    let here = std::env::current_exe()?;
    let folder = here.parent().and_then(Path::parent).ok_or("no folder")?;
    let placement = Placement::apart();
    let server = Server::start(
        &Launch {
            cpus: &placement.server,
            ..Launch::of(
                &folder.join(format!("chapter5{}", std::env::consts::EXE_SUFFIX)),
                "problem",
            )
        },
        &interrupt,
    )?;
    let target = server.service();
    let run = |load: Load| {
        let settings = Settings {
            cpus: &placement.generator,
            interrupt: &interrupt,
            progress: None,
        };
        loadgen::run(target, &load, &settings)
    };
    let pings = |users| Load {
        duration: Duration::from_secs(seconds),
        ..Load::closed(Exchange::get("/ping", "pong"), users)
    };
    let (closed, open) = thread::scope(|scope| {
        let closed = scope.spawn(|| run(pings(1)));
        // Enough connections that no ping waits for one.
        let open = scope.spawn(|| {
            run(Load {
                arrivals: Arrivals::Open {
                    per_second: DUE_PER_SECOND,
                },
                ..pings(64)
            })
        });
        come_and_go(seconds, run)?;
        let ended = |joined: thread::Result<Result<Outcome, GeneratorError>>| {
            joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        Ok::<_, GeneratorError>((ended(closed.join())?, ended(open.join())?))
    })?;

    println!(
        "| pings | one user, who waits for each answer | {DUE_PER_SECOND} a second, on a schedule |"
    );
    println!("| --- | ---: | ---: |");
    let answered = |outcome: &Outcome| figures::count(outcome.completed as f64);
    println!("| answered | {} | {} |", answered(&closed), answered(&open));
    for (name, quantile) in [
        ("median", 0.5),
        ("90th percentile", 0.9),
        ("99th percentile", 0.99),
    ] {
        row(name, closed.latency.at(quantile), open.latency.at(quantile));
    }
    row(
        "largest",
        Some(closed.latency.max_ms),
        Some(open.latency.max_ms),
    );
    let faults = |outcome: &Outcome| outcome.error_count() + outcome.wrong_answers;
    let machine = environment::observe(server.is_optimised(), "dev", BTreeMap::new());
    println!(
        "\n*{USERS} users for half of every second, for {seconds} s; {} errors. Measured by `cargo run \
         -p bench --example hidden_stall -- {seconds}` at commit `{}` on {} (UTC): {}.*",
        faults(&closed) + faults(&open),
        provenance::checked_out(Path::new(".")).in_short(),
        &provenance::now()[..10],
        machine.in_a_line(),
    );
    Ok(())
}

/// Users for the first half of every period.
fn come_and_go(
    seconds: u64,
    run: impl Fn(Load) -> Result<Outcome, GeneratorError>,
) -> Result<(), GeneratorError> {
    let began = Instant::now();
    for period in 0..u32::try_from(seconds).unwrap_or(u32::MAX) {
        run(Load {
            duration: PERIOD / 2,
            ..Load::closed(Exchange::get("/data", "4"), USERS)
        })?;
        let next = began + PERIOD * (period + 1);
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    Ok(())
}

fn row(name: &str, closed: Option<f64>, open: Option<f64>) {
    let text = |ms: Option<f64>| ms.map_or_else(|| "unknown".to_owned(), figures::milliseconds);
    println!("| {name} | {} | {} |", text(closed), text(open));
}
