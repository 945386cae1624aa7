//! What it costs to keep workers on their CPUs: a start that takes longer, and no way out beside a
//! busy neighbour. Prints Markdown for the book, whose recorded run is
//! `flamegraphs/measuring/noisy-neighbour.md`:
//!
//! ```text
//! cargo build -p chapter7
//! cargo run -p bench --example noisy_neighbour -- [SECONDS]
//! ```
//!
//! Chapter 7's problem and solution under the chapter's load, first alone, then beside a thread that
//! keeps the first CPU busy. Each is measured twice, in the order problem, solution, solution,
//! problem, and the means are shown.

mod shared;

use std::error::Error;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use loadgen::Settings;
use loadgen::cpus;
use loadgen::interrupt::Interrupt;
use measurement::chapter_file::ChapterFile;
use measurement::claim::{PROBLEM, SOLUTION};
use measurement::figures;
use measurement::load::Load;
use measurement::outcome::Outcome;

const CHAPTER: &str = "chapters/7-numa-locality/chapter.toml";

/// One server, from its start.
struct Seen {
    variant: &'static str,
    start: Duration,
    alone: Outcome,
    beside: Outcome,
    is_optimised: bool,
}

/// Which of the two runs.
type Side = fn(&Seen) -> &Outcome;

fn main() -> Result<(), Box<dyn Error>> {
    let seconds = shared::argument(1, 8)?;
    let chapter = ChapterFile::read(Path::new(CHAPTER), CHAPTER, cpus::count())?;
    let load = Load {
        duration: Duration::from_secs(seconds),
        ..chapter.load_of(&chapter.load)
    };
    let seen = [PROBLEM, SOLUTION, SOLUTION, PROBLEM]
        .into_iter()
        .map(|variant| observe(variant, &load))
        .collect::<Result<Vec<_>, _>>()?;

    println!("| | problem | solution |\n| --- | ---: | ---: |");
    let row = |name: &str, of: &dyn Fn(&Seen) -> f64, text: fn(f64) -> String| {
        let mean = |variant| {
            let values: Vec<f64> = seen
                .iter()
                .filter(|seen| seen.variant == variant)
                .map(of)
                .collect();
            text(values.iter().sum::<f64>() / values.len() as f64)
        };
        println!("| {name} | {} | {} |", mean(PROBLEM), mean(SOLUTION));
    };
    row(
        "from its start until it listens",
        &|seen| seen.start.as_secs_f64() * 1_000.0,
        figures::milliseconds,
    );
    let sides: [(&str, Side); 2] = [
        ("alone", |seen| &seen.alone),
        ("beside a busy neighbour", |seen| &seen.beside),
    ];
    for (name, side) in sides {
        let at =
            |quantile: f64| move |seen: &Seen| side(seen).latency.at(quantile).unwrap_or(f64::NAN);
        row(
            &format!("requests per second, {name}"),
            &|seen| side(seen).requests_per_second,
            |rate| figures::count(rate.round()),
        );
        row(
            &format!("median latency, {name}"),
            &at(0.5),
            figures::milliseconds,
        );
        row(
            &format!("99th percentile, {name}"),
            &at(0.99),
            figures::milliseconds,
        );
    }
    let outcomes = seen.iter().flat_map(|seen| [&seen.alone, &seen.beside]);
    let faults: u64 = outcomes.map(shared::faults).sum();
    shared::print_provenance(
        &format!(
            "{} users without pause, {seconds} s a run; {faults} errors",
            load.users
        ),
        &format!("noisy_neighbour -- {seconds}"),
        seen.iter().all(|seen| seen.is_optimised),
    );
    Ok(())
}

/// Starts the variant and measures it, alone and beside a neighbour.
fn observe(variant: &'static str, load: &Load) -> Result<Seen, Box<dyn Error>> {
    let interrupt = Interrupt::new();
    let began = Instant::now();
    let server = shared::start("chapter7", variant, &[], &interrupt)?;
    let start = began.elapsed();
    let settings = Settings::of(&interrupt);
    let run = || loadgen::run(server.service(), load, &settings);
    let alone = run()?;
    let done = AtomicBool::new(false);
    let beside = thread::scope(|scope| {
        scope.spawn(|| keep_the_first_cpu_busy(&done));
        let beside = run();
        done.store(true, Ordering::Relaxed);
        beside
    })?;
    Ok(Seen {
        variant,
        start,
        alone,
        beside,
        is_optimised: server.is_optimised(),
    })
}

fn keep_the_first_cpu_busy(done: &AtomicBool) {
    let first: Vec<usize> = cpus::available().into_iter().take(1).collect();
    if let Err(error) = cpus::pin_current_thread(&first) {
        eprintln!("the neighbour goes where it likes: {error}");
    }
    while !done.load(Ordering::Relaxed) {
        std::hint::spin_loop();
    }
}
