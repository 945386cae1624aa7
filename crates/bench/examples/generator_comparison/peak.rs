//! Who asks fastest, on the same processor and over the same number of connections?

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::Duration;

use loadgen::processors;

use crate::contestant::{Contestant, Result, load};
use crate::{Outcome, Placement};

const CONTESTANTS: [Contestant; 5] = [
    Contestant::Embedded,
    Contestant::Wrk,
    Contestant::Oha,
    Contestant::K6,
    Contestant::Locust,
];

pub(crate) fn compare(placement: &Placement, rounds: u32, seconds: Duration) {
    let load = load(64, Duration::ZERO, Duration::from_secs(1), seconds);
    let mut results: Vec<Vec<Result>> = CONTESTANTS.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        for (contestant, results) in CONTESTANTS.iter().zip(&mut results) {
            let answered = with_server(placement, |target| {
                contestant.run(target, &load, &placement.generator)
            });
            match answered {
                Ok(result) => results.push(result),
                Err(error) if round == 0 => eprintln!("{} left out: {error}", contestant.name()),
                Err(_) => {}
            }
        }
    }
    let median = |of: fn(&Result) -> f64, results: &[_]| {
        let mut values: Vec<f64> = results.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    println!(
        "| generator | answers a second, median | lowest to highest | of wrk's | its processor | answers a second of processor time |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: |");
    let wrk = results[1]
        .first()
        .map(|_| median(|r| r.per_second, &results[1]));
    for (contestant, results) in CONTESTANTS.iter().zip(&results) {
        let Some(first) = results.first() else {
            continue;
        };
        let rates = || results.iter().map(|result| result.per_second);
        let rate = median(|result| result.per_second, results);
        println!(
            "| {} {} | {rate:.0} | {:.0} to {:.0} | {} | {:.0} % | {:.0} |",
            contestant.name(),
            first.version,
            rates().fold(f64::INFINITY, f64::min),
            rates().fold(0.0, f64::max),
            wrk.map_or_else(|| "?".to_owned(), |wrk| format!("{:.2}", rate / wrk)),
            100.0 * median(|result| result.cpu_share.unwrap_or(f64::NAN), results),
            median(per_processor_second, results),
        );
    }
}

/// What an answer costs the generator: less swayed by what else the machine does than the rate.
fn per_processor_second(result: &Result) -> f64 {
    result.per_second / result.cpu_share.unwrap_or(f64::NAN)
}

/// A fresh server for every run: none inherits another's connections.
fn with_server<T>(
    placement: &Placement,
    work: impl FnOnce(SocketAddr) -> Outcome<T>,
) -> Outcome<T> {
    let mut child = std::thread::scope(|scope| {
        scope
            .spawn(|| -> std::result::Result<_, String> {
                processors::pin_current_thread(&placement.server).map_err(|e| e.to_string())?;
                let program = std::env::current_exe().map_err(|e| e.to_string())?;
                Command::new(program)
                    .arg("serve")
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .spawn()
                    .map_err(|e| e.to_string())
            })
            .join()
            .map_err(|_| "a thread panicked".to_owned())?
    })?;
    let mut address = String::new();
    let stdout = child.stdout.take().ok_or("no output")?;
    BufReader::new(stdout).read_line(&mut address)?;
    let result = work(address.trim().parse()?);
    // Closes its standard input, which ends it.
    drop(child.stdin.take());
    child.wait()?;
    result
}
