//! Where a body is kept, by which strategy, on a disk and on tmpfs: throughput, and the latency of a
//! bystander.
//!
//! `cargo run -p chapter8 --example keeping [-- SECONDS ROUNDS]`
//!
//! The chapter's own service does the work: 16 users ask for 8 MiB each, and a
//! bystander for `/ping`. What it prints is the book's table.

mod cell;
mod folder;
mod table;

use std::path::PathBuf;
use std::time::Duration;

use bench::placement::Placement;
use bench::server::{Launch, Server};
use loadgen::interrupt::Interrupt;

use self::cell::{Cell, Measured};
use self::folder::Folder;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (seconds, rounds) = match arguments.as_slice() {
        [] => (1.0, 4),
        [seconds, rounds] => (seconds.parse()?, rounds.parse()?),
        _ => return Err("usage: keeping [SECONDS ROUNDS]".into()),
    };
    let duration = Duration::from_secs_f64(seconds);
    let folders = Folder::all()?;
    let mut cells: Vec<Cell> = Cell::all(folders.len()).collect();
    let mut measured: Vec<(Cell, Measured)> = Vec::new();
    let program = service()?;
    let placement = Placement::apart();
    let interrupt = Interrupt::new();
    for round in 1..=rounds {
        eprintln!("round {round} of {rounds}");
        for cell in &cells {
            let folder = folders.get(cell.folder).ok_or("no such folder")?;
            let launch = Launch {
                arguments: &["--files".to_owned(), folder.path()?],
                cpus: &placement.server,
                ..Launch::of(&program, "problem")
            };
            let server = Server::start(&launch, &interrupt)?;
            let now = cell.run(&server, duration, &placement, &interrupt)?;
            measured.push((*cell, now));
        }
        // There and back.
        cells.reverse();
    }
    print!("{}", table::of(&folders, &measured)?);
    Ok(())
}

/// The chapter's program, which cargo puts beside its examples' folder.
fn service() -> Result<PathBuf, Box<dyn std::error::Error>> {
    let example = std::env::current_exe()?;
    let folder = example.parent().and_then(|folder| folder.parent());
    let program = folder
        .ok_or("an example has a folder")?
        .join(format!("chapter8{}", std::env::consts::EXE_SUFFIX));
    if program.is_file() {
        return Ok(program);
    }
    Err("build the service first: cargo build -p chapter8".into())
}
