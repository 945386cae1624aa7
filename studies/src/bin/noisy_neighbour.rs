//! What it costs to keep workers on their CPUs: a start that takes longer, and no way out beside a busy
//! neighbour: `noisy-neighbour.md`.
//!
//! Chapter 7's problem and solution under the chapter's load, first alone, then beside a thread that
//! keeps the first CPU busy. Each is measured twice, in the order problem, solution, solution,
//! problem, and the means are shown.
//!
//! `cargo run -p studies --bin noisy_neighbour -- 8` (seconds)

use std::time::{Duration, Instant};

use duel::figures;
use duel::load::cpus;
use duel::traffic::Traffic;
use measurement::claim::{PROBLEM, SOLUTION};
use studies::Failed;

const ROWS: [&str; 7] = [
    "from its start until it listens",
    "requests per second, alone",
    "median latency, alone",
    "99th percentile, alone",
    "requests per second, beside a busy neighbour",
    "median latency, beside a busy neighbour",
    "99th percentile, beside a busy neighbour",
];

fn main() -> Result<(), Failed> {
    let seconds = studies::argument(1, 8)?;
    studies::compile(&[7])?;
    let chapter = studies::chapter_file(7)?;
    let load = Traffic {
        duration: Duration::from_secs(seconds),
        ..chapter.load_of(&chapter.load)
    };
    // Sums of two measurements each, problem and solution.
    let mut sums = [[0.0; 2]; ROWS.len()];
    for variant in [0, 1, 1, 0] {
        let figures = measured([PROBLEM, SOLUTION][variant], &load)?;
        for (sum, figure) in sums.iter_mut().zip(figures) {
            sum[variant] += figure;
        }
    }
    println!("| | problem | solution |\n| --- | ---: | ---: |");
    for (name, sums) in ROWS.into_iter().zip(sums) {
        let text = if name.starts_with("requests") {
            |sum: f64| figures::count((sum / 2.0).round())
        } else {
            |sum: f64| figures::milliseconds(sum / 2.0)
        };
        let [problem, solution] = sums.map(text);
        println!("| {name} | {problem} | {solution} |");
    }
    studies::print_provenance(&format!(
        "{} users without pause, {seconds} s a run",
        load.users
    ));
    Ok(())
}

/// The figures of a fresh server, in the order of the rows.
fn measured(variant: &str, load: &Traffic) -> Result<Vec<f64>, Failed> {
    let began = Instant::now();
    let server = studies::start(7, variant, &[], &[])?;
    let mut figures = vec![began.elapsed().as_secs_f64() * 1e3];
    let first: Vec<usize> = cpus::available().into_iter().take(1).collect();
    let run = || studies::load(&server, load, &[]);
    for outcome in [run()?, studies::beside_a_busy_loop(&first, false, run)?] {
        let at = |quantile| outcome.latency.at(quantile).unwrap_or(f64::NAN);
        figures.extend([outcome.requests_per_second, at(0.5), at(0.99)]);
    }
    Ok(figures)
}
