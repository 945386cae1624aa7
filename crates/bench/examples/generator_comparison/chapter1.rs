//! Do the workshop's generators tell the same of chapter 1's solution, and which of them can
//! make the load at all?

use std::path::{Path, PathBuf};
use std::time::Duration;

use bench::server::{Launch, Server};
use loadgen::interrupt::Interrupt;

use crate::contestant::{Contestant, Result, load};
use crate::{Outcome, Placement};

const CONTESTANTS: [Contestant; 3] = [Contestant::Embedded, Contestant::K6, Contestant::Locust];

pub(crate) fn compare(
    placement: &Placement,
    users: u32,
    rounds: u32,
    seconds: Duration,
) -> Outcome<()> {
    let think = Duration::from_millis(500);
    let load = load(users, think, Duration::from_secs(2), seconds);
    let bound = f64::from(users) / (0.5 + 0.05);
    println!("Little's bound: {users} users / (0.5 s + 0.05 s) = {bound:.0} answers a second.\n");
    println!(
        "| round | generator | answers a second | of the bound | median | p99 | faults | its processor: used | waited for | generator-bound |"
    );
    println!("| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |");
    for round in 1..=rounds {
        for contestant in CONTESTANTS {
            let program = program()?;
            let launch = Launch {
                processors: &placement.server,
                ..Launch::of(&program, "solution")
            };
            let server = Server::start(&launch, &Interrupt::new())?;
            match contestant.run(server.service(), &load, &placement.generator) {
                Ok(result) => row(round, contestant, &result, bound),
                Err(error) => eprintln!("{} left out: {error}", contestant.name()),
            }
        }
    }
    Ok(())
}

fn row(round: u32, contestant: Contestant, result: &Result, bound: f64) {
    println!(
        "| {round} | {} {} | {:.1} | {:.1} % | {:.1} ms | {:.1} ms | {} | {:.0} % | {} | {} |",
        contestant.name(),
        result.version,
        result.per_second,
        100.0 * result.per_second / bound,
        result.median_ms.unwrap_or(f64::NAN),
        result.p99_ms.unwrap_or(f64::NAN),
        result.faults,
        100.0 * result.cpu_share.unwrap_or(f64::NAN),
        result
            .waited_share
            .map_or_else(|| "?".to_owned(), |share| format!("{:.0} %", 100.0 * share)),
        if result.is_bound { "yes" } else { "no" },
    );
}

/// Chapter 1's binary, beside this one's folder.
fn program() -> Outcome<PathBuf> {
    let here = std::env::current_exe()?;
    let folder = here.parent().and_then(Path::parent).ok_or("no folder")?;
    let program = folder.join(format!("chapter1{}", std::env::consts::EXE_SUFFIX));
    if program.is_file() {
        Ok(program)
    } else {
        Err("chapter 1 is not built: run `cargo build -p chapter1`".into())
    }
}
