//! Stalls of a service that a closed loop hides: `hidden-stall.md`.
//!
//! Users ask chapter 5's problem for work, all of them for half of every second and none in the other
//! half. Beside them, pings go to the same server in two ways at once: from one user who waits for
//! each answer, and on a schedule.
//!
//! `cargo run -p studies --bin hidden_stall -- 20` (seconds)

use std::thread;
use std::time::{Duration, Instant};

use course::measurement::load::Exchange;
use engine::placement::Placement;
use engine::traffic::{Arrivals, Spacing, Traffic};
use statistics::figures;
use studies::Failed;

const USERS: u32 = 64;
const DUE_PER_SECOND: f64 = 100.0;
const PERIOD: Duration = Duration::from_secs(1);

fn main() -> Result<(), Failed> {
    let seconds = studies::argument(1, 20)?;
    studies::compile(&[5])?;
    let placement = Placement::apart();
    let server = studies::start(5, "problem", &placement.server, &[])?;
    let run = |load: &Traffic| studies::load(&server, load, &placement.generator);
    let closed = Traffic {
        duration: Duration::from_secs(seconds),
        ..Exchange::get("/ping", "pong").by(1)
    };
    let open = Traffic {
        arrivals: Arrivals::Open {
            per_second: DUE_PER_SECOND,
            spacing: Spacing::Even,
        },
        // Enough connections that no ping waits for one.
        users: 64,
        ..closed.clone()
    };
    let work = Traffic {
        duration: PERIOD / 2,
        ..Exchange::get("/data", "4").by(USERS)
    };
    let (closed, open) = thread::scope(|scope| {
        let closed = scope.spawn(|| run(&closed));
        let open = scope.spawn(|| run(&open));
        let mut next = Instant::now();
        for _ in 0..seconds {
            run(&work)?;
            next += PERIOD;
            thread::sleep(next.saturating_duration_since(Instant::now()));
        }
        let closed = closed.join().map_err(|_| "a generator panicked")?;
        let open = open.join().map_err(|_| "a generator panicked")?;
        Ok::<_, Failed>((closed?, open?))
    })?;

    println!(
        "| pings | one user, who waits for each answer | {DUE_PER_SECOND} a second, on a schedule |"
    );
    println!("| --- | ---: | ---: |");
    let answered = [&closed, &open].map(|outcome| figures::count(outcome.completed as f64));
    println!("| answered | {} |", answered.join(" | "));
    studies::print_percentiles(&closed.latency, &open.latency);
    studies::print_provenance(&format!(
        "{USERS} users for half of every second, for {seconds} s"
    ));
    Ok(())
}
