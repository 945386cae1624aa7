//! Result of each counter of CPUs under each limit that a system can set (`limits.md`), and the cost of too many
//! workers under a quota (`throttling.md`).
//!
//! Starts itself again under each limit, which a line of shell sets: affinity always, control groups of
//! both versions where it may (as root, mostly). It prints which limits it could not set.
//!
//! `cargo run -p studies --bin processor_limits -- counters` (or `throttling`); Linux only

// Ranks and rounds: small numbers that are never negative.
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use children::cpus;
use course::bench::counters::{Judged, Usable, counts};
use studies::Failed;
use studies::limits::{JOIN, V1_CPUS, V1_TIME, V2, counted, under, under_quota};

/// Moves the shell, and what it starts, to one CPU.
const ONE_CPU: &str = "taskset -cp $FIRST $$ >/dev/null";
/// The limits of version 1 and of version 2.
const LIMITS: [(&str, &str, &str); 4] = [
    (
        "the group has one CPU",
        "echo $FIRST >$G/cpuset.cpus",
        "echo $FIRST >$G/cpuset.cpus",
    ),
    (
        "the group's quota is 1.5",
        "echo 150000 >$G/cpu.cfs_quota_us",
        "echo 150000 100000 >$G/cpu.max",
    ),
    (
        "the group's quota is 0.5",
        "echo 50000 >$G/cpu.cfs_quota_us",
        "echo 50000 100000 >$G/cpu.max",
    ),
    (
        "the quota of the group above is 0.5",
        "echo 50000 >$G/cpu.cfs_quota_us && G=$G/within && mkdir $G",
        "echo 50000 100000 >$G/cpu.max && G=$G/within && mkdir $G",
    ),
];
/// Time that the workers work; below, the approximate CPU time of a piece of work.
const SPAN: Duration = Duration::from_secs(5);
const PIECE: Duration = Duration::from_millis(2);

fn main() -> Result<(), Failed> {
    match studies::argument(1, String::new())?.as_str() {
        "counters" => counters(),
        "throttling" => throttling()?,
        "count" => return count(&studies::argument(2, String::new())?),
        "work" => return work(studies::argument(2, 1)?, studies::argument(3, 1)?),
        _ => return Err("say `counters` or `throttling`".into()),
    }
    studies::print_provenance("A process of its own for each row");
    Ok(())
}

fn counters() {
    let mut rows = Vec::from([
        ("none".to_owned(), under("true", &["count", "ask"], "true")),
        (
            "the process is started on one CPU".to_owned(),
            under(ONE_CPU, &["count", "ask"], "true"),
        ),
        (
            "a thread pins itself to one, then it counts".to_owned(),
            under("true", &["count", "pin, ask"], "true"),
        ),
        (
            "it counts, pins itself to one, and counts again".to_owned(),
            under("true", &["count", "ask, pin, ask"], "true"),
        ),
    ]);
    for version in [1, 2] {
        for (number, (name, v1, v2)) in LIMITS.into_iter().enumerate() {
            let (group, limit) = match (version, number) {
                (1, 0) => (V1_CPUS, v1),
                (1, _) => (V1_TIME, v1),
                _ => (V2, v2),
            };
            let limit = format!("{group} && {limit} && {JOIN}");
            let said = under(&limit, &["count", "ask"], "true");
            rows.push((format!("{name}, cgroup v{version}"), said));
        }
    }
    println!("| limit | the process may use | std | num_cpus | tokio | many_cpus |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: |");
    for (limit, said) in &rows {
        if let Ok(said) = said {
            println!("| {limit} | {said} |");
        }
    }
    println!(
        "\nA count in **bold** is wrong: ↓ too few workers for the CPUs, ↑ too many for the time."
    );
    println!("\nNot set on this machine:\n");
    for (limit, said) in &rows {
        if let Err(reason) = said {
            println!("- {limit}: {reason}");
        }
    }
}

/// The process that counts: it asks and pins itself in this order.
fn count(order: &str) -> Result<(), Failed> {
    let usable = Usable::here();
    if order.starts_with("ask, pin") {
        counts();
    }
    if order.contains("pin") {
        cpus::pin_current_thread(&cpus::available()[..1])?;
    }
    let counts = counts().map(|(_, count)| match usable.judge(count) {
        Judged::Right => count.to_string(),
        Judged::TooFew => format!("**{count}** ↓"),
        Judged::TooMany => format!("**{count}** ↑"),
    });
    let time = match usable.quota {
        Some(quota) if quota < usable.cpus as f64 => format!(", for the time of {quota}"),
        _ => String::new(),
    };
    println!("{}{time} | {}", usable.cpus, counts.join(" | "));
    Ok(())
}

/// Too many workers under a quota of one CPU: the work is not done sooner, and everybody pauses together.
fn throttling() -> Result<(), Failed> {
    // Before a quota holds: the fastest of some, since a neighbour can only slow one down.
    const TRIED: u64 = 1_000_000;
    let fastest = (0..9).map(|_| compute(TRIED)).min().unwrap_or(PIECE);
    let rounds = TRIED as f64 * PIECE.as_secs_f64() / fastest.as_secs_f64();
    println!(
        "| workers | pieces of work a second | median | 99th percentile | longest | periods throttled |"
    );
    println!("| ---: | ---: | ---: | ---: | ---: | ---: |");
    for workers in ["1", "2", "8"] {
        let arguments = ["work", workers, &(rounds as u64).to_string()];
        let said = under_quota(1, &arguments)?;
        let (row, stat) = said.split_once('\n').ok_or("no figures of the workers")?;
        let [throttled, all] =
            ["nr_throttled ", "nr_periods "].map(|key| match counted(stat, key) {
                Some(count) => count.to_string(),
                None => "?".to_owned(),
            });
        println!("| {workers} | {row} | {throttled} of {all} |");
    }
    println!(
        "\nA quota of 1 CPU in periods of 100 ms, {} s each; a piece of work takes about {} ms of a CPU.",
        SPAN.as_secs(),
        PIECE.as_millis()
    );
    Ok(())
}

/// The process that works, with so many threads, and so many rounds in a piece of work.
fn work(workers: usize, rounds: u64) -> Result<(), Failed> {
    let end = Instant::now() + SPAN;
    let mut threads = Vec::new();
    for _ in 0..workers {
        threads.push(std::thread::spawn(move || pieces(rounds, end)));
    }
    let mut all = Vec::new();
    for thread in threads {
        all.extend(thread.join().map_err(|_| "a worker panicked")?);
    }
    all.sort_unstable();
    let at =
        |share: f64| all[(share * (all.len() - 1) as f64).round() as usize].as_secs_f64() * 1e3;
    println!(
        "{:.0} | {:.1} ms | {:.1} ms | {:.1} ms",
        all.len() as f64 / SPAN.as_secs_f64(),
        at(0.5),
        at(0.99),
        at(1.0)
    );
    Ok(())
}

/// Computes until `end`, at least one piece, and returns how long each took.
fn pieces(rounds: u64, end: Instant) -> Vec<Duration> {
    let mut taken = vec![compute(rounds)];
    while Instant::now() < end {
        taken.push(compute(rounds));
    }
    taken
}

/// Does arithmetic whose result no compiler can foresee, and returns how long it took.
fn compute(rounds: u64) -> Duration {
    let begin = Instant::now();
    let mut number = black_box(0x9e37_79b9_7f4a_7c15_u64);
    for round in 0..rounds {
        number = number.rotate_left(5).wrapping_mul(0x2545_f491_4f6c_dd1d) ^ round;
    }
    black_box(number);
    begin.elapsed()
}
