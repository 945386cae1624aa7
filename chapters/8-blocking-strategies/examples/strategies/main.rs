//! Strategies and workloads, with what the published benchmark left out: bystanders.
//!
//! `cargo run -p chapter8 --example strategies [-- SECONDS ROUNDS]`
//!
//! The published benchmark ran batches of blocking operations by each strategy and took the time.
//! Here a timer and a `/ping` on the same runtime are timed meanwhile. A benchmark harness such as
//! criterion measures one number of one function at a time, for many seconds each. This needs three
//! numbers of one moment, and cells that take turns, so that a machine that slowly changes favours
//! none of them. What it prints is the book's table.

mod bystanders;
mod cell;
mod table;
mod workload;

use std::time::Duration;

use self::cell::{Cell, Measured};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (seconds, rounds) = match arguments.as_slice() {
        [] => (1.0, 6),
        [seconds, rounds] => (seconds.parse()?, rounds.parse()?),
        _ => return Err("usage: strategies [SECONDS ROUNDS]".into()),
    };
    let duration = Duration::from_secs_f64(seconds);
    let mut measured: Vec<(Cell, Measured)> = Cell::all()
        .map(|cell| (cell, Measured::default()))
        .collect();
    for round in 1..=rounds {
        eprintln!("round {round} of {rounds}");
        // There and back.
        measured.reverse();
        for (cell, so_far) in &mut measured {
            cell.run(duration, so_far)?;
        }
    }
    if rounds % 2 == 1 {
        measured.reverse();
    }
    print!("{}", table::of(&measured)?);
    Ok(())
}
