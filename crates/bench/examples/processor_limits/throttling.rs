//! Too many workers under a quota: the work is not done sooner, and everybody pauses together.

// Ranks and rounds: small numbers that are never negative.
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]

use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::cgroup::{Group, Limit, Version};
use crate::probe::{Under, answer, wait_for_limit};

/// The argument that makes this program the process that works.
pub(crate) const WORK: &str = "work";
/// How long it works.
const SPAN: Duration = Duration::from_secs(5);
/// The quota: the time of so many CPUs.
const QUOTA: f64 = 1.0;
/// CPU time of a piece of work, about.
const PIECE: Duration = Duration::from_millis(2);

/// What the workers of a process saw.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Worked {
    pieces: usize,
    p50_ms: f64,
    p99_ms: f64,
    worst_ms: f64,
}

/// Prints the table; says why where no quota can be set.
pub(crate) fn table() -> Result<(), Box<dyn Error>> {
    let group = || {
        Group::limited(Version::Two, Limit::Quota(QUOTA))
            .or_else(|_| Group::limited(Version::One, Limit::Quota(QUOTA)))
    };
    match group() {
        Err(reason) => {
            println!("Too many workers under a quota: inconclusive on this machine, {reason}.");
        }
        Ok(first) => {
            drop(first);
            println!(
                "| workers | pieces of work a second | median | 99th percentile | longest | periods throttled |"
            );
            println!("| ---: | ---: | ---: | ---: | ---: | ---: |");
            for workers in [1, 2, 8] {
                println!("{}", row(workers, &group()?)?);
            }
            println!(
                "\nA quota of {QUOTA} CPU in periods of 100 ms, {} s each; a piece of work takes about \
                 {} ms of a CPU.",
                SPAN.as_secs(),
                PIECE.as_millis()
            );
        }
    }
    Ok(())
}

fn row(workers: usize, group: &Group) -> Result<String, Box<dyn Error>> {
    let said = answer(&[WORK, &workers.to_string()], Under::Group(group))?;
    let worked: Worked = serde_json::from_str(&said)?;
    let counted = |key| group.counted(key).unwrap_or(0);
    Ok(format!(
        "| {workers} | {:.0} | {:.1} ms | {:.1} ms | {:.1} ms | {} of {} |",
        worked.pieces as f64 / SPAN.as_secs_f64(),
        worked.p50_ms,
        worked.p99_ms,
        worked.worst_ms,
        counted("nr_throttled "),
        counted("nr_periods "),
    ))
}

/// The process that works, with so many threads.
pub(crate) fn work(workers: usize) -> Result<(), Box<dyn Error>> {
    let rounds = rounds_of_a_piece();
    wait_for_limit()?;
    let end = Instant::now() + SPAN;
    let mut pieces: Vec<f64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers)
            .map(|_| scope.spawn(move || pieces_until(end, rounds)))
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap_or_default())
            .collect()
    });
    pieces.sort_unstable_by(f64::total_cmp);
    // Of a sorted list that cannot be empty: a piece that has begun is finished.
    let at = |share: f64| pieces[(share * (pieces.len() - 1) as f64).round() as usize];
    let worked = Worked {
        pieces: pieces.len(),
        p50_ms: at(0.5),
        p99_ms: at(0.99),
        worst_ms: at(1.0),
    };
    println!("{}", serde_json::to_string(&worked)?);
    Ok(())
}

/// How long each piece took, in milliseconds.
fn pieces_until(end: Instant, rounds: u64) -> Vec<f64> {
    let mut taken = Vec::new();
    loop {
        let begin = Instant::now();
        if begin >= end && !taken.is_empty() {
            return taken;
        }
        compute(rounds);
        taken.push(begin.elapsed().as_secs_f64() * 1e3);
    }
}

/// Before the quota holds: the fastest of some, since a neighbour can only slow one down.
fn rounds_of_a_piece() -> u64 {
    const TRIED: u64 = 1_000_000;
    let fastest = (0..9)
        .map(|_| {
            let begin = Instant::now();
            compute(TRIED);
            begin.elapsed()
        })
        .min()
        .unwrap_or(PIECE);
    // Some millions.
    let rounds = TRIED as f64 * PIECE.as_secs_f64() / fastest.as_secs_f64();
    rounds as u64
}

/// Arithmetic that no compiler can foresee the end of.
fn compute(rounds: u64) {
    let mut number = black_box(0x9e37_79b9_7f4a_7c15_u64);
    for round in 0..rounds {
        number = number.rotate_left(5).wrapping_mul(0x2545_f491_4f6c_dd1d) ^ round;
    }
    black_box(number);
}
