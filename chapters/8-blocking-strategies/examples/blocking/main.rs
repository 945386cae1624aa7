//! The two published benchmarks, with what they left out: a bystander on the same runtime.
//!
//! `cargo run -p chapter8 --example blocking -- strategies|keeping [SECONDS ROUNDS]`
//!
//! A batch of operations runs at once, by one strategy, again and again for some seconds. The
//! published figure is the time of a batch. Meanwhile a thread sends a byte to a task of the runtime
//! every 5 ms and waits for it to come back. Cells take turns, there and back, so that a machine that
//! slowly changes favours none of them. What it prints is the book's table.

mod cell;
mod table;

use std::path::{Path, PathBuf};
use std::time::Duration;

use self::cell::{Cell, Keep, Measured, Strategy, Work};

const STRATEGIES: [Strategy; 4] = [
    Strategy::Direct,
    Strategy::Permit,
    Strategy::Dispatch,
    Strategy::SpawnBlocking,
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let usage = "usage: blocking strategies|keeping [SECONDS ROUNDS]";
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (table, seconds, rounds) = match arguments.as_slice() {
        [table] => (table, 1.0, 6),
        [table, seconds, rounds] => (table, seconds.parse()?, rounds.parse()?),
        _ => return Err(usage.into()),
    };
    let duration = Duration::from_secs_f64(seconds);
    match table.as_str() {
        "strategies" => print!(
            "{}",
            table::of_strategies(&measured(short(), duration, rounds)?)?
        ),
        "keeping" => {
            // Beside the program is a disk, and Linux's shared memory looks like one.
            let program = std::env::current_exe()?;
            let beside = program.parent().map(Path::to_owned);
            let folders = beside.into_iter().chain([PathBuf::from("/dev/shm")]);
            let folders: Vec<PathBuf> = folders.filter(|folder| folder.is_dir()).collect();
            let measured = measured(bodies(&folders), duration, rounds)?;
            print!("{}", table::of_keeping(&measured, &folders)?);
        }
        _ => return Err(usage.into()),
    }
    Ok(())
}

/// Operations of some microseconds, by each strategy.
fn short() -> Vec<Cell> {
    [Work::Noop, Work::Expensive, Work::Sleep]
        .iter()
        .flat_map(|work| STRATEGIES.map(|strategy| (work.clone(), strategy)))
        .collect()
}

/// Bodies in all places; those in memory need no strategy and no folder.
fn bodies(folders: &[PathBuf]) -> Vec<Cell> {
    let in_memory = [Keep::Ram, Keep::RamGather];
    let in_memory = in_memory.map(|keep| (Work::Body(keep, PathBuf::new()), Strategy::Direct));
    let mut cells = Vec::from(in_memory);
    for keep in [Keep::Fs, Keep::Mmap, Keep::MmapCopy] {
        for strategy in STRATEGIES {
            let work = |folder: &PathBuf| Work::Body(keep, folder.clone());
            cells.extend(folders.iter().map(|folder| (work(folder), strategy)));
        }
    }
    cells
}

fn measured(
    cells: Vec<Cell>,
    duration: Duration,
    rounds: u32,
) -> Result<Vec<(Cell, Measured)>, Box<dyn std::error::Error>> {
    let mut measured: Vec<_> = cells
        .into_iter()
        .map(|cell| (cell, Measured::default()))
        .collect();
    for round in 0..rounds {
        eprintln!("round {} of {rounds}", round + 1);
        let mut order: Vec<_> = measured.iter_mut().collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for (cell, so_far) in order {
            cell::run(cell, duration, so_far)?;
        }
    }
    Ok(measured)
}
