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

mod shared;

use std::error::Error;
use std::thread;
use std::time::{Duration, Instant};

use bench::placement::Placement;
use loadgen::interrupt::Interrupt;
use loadgen::{GeneratorError, Settings};
use measurement::figures;
use measurement::load::{Arrivals, Exchange, Load};
use measurement::outcome::Outcome;

const USERS: u32 = 64;
const DUE_PER_SECOND: f64 = 100.0;
const PERIOD: Duration = Duration::from_secs(1);

fn main() -> Result<(), Box<dyn Error>> {
    let seconds = shared::argument(1, 20)?;
    let interrupt = Interrupt::new();
    let placement = Placement::apart();
    let server = shared::start("chapter5", "problem", &placement.server, &interrupt)?;
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
    shared::print_percentiles(&closed.latency, &open.latency);
    let errors = shared::faults(&closed) + shared::faults(&open);
    shared::print_provenance(
        &format!("{USERS} users for half of every second, for {seconds} s; {errors} errors"),
        &format!("hidden_stall -- {seconds}"),
        server.is_optimised(),
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
