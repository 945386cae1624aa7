//! Which order of rounds finds the same effect again most closely, in the same time: `orders.md`.
//!
//! One measurement is six rounds of a second, whatever their order:
//!
//! - **triplets**: problem, fix and fix again; two pairs, and two that tell the noise floor. What a proof does.
//! - **ABBA**: problem, fix, fix, problem; three pairs, and nothing that tells the noise floor.
//! - **duet**: problem and fix at the same time; six pairs. Either both servers share a CPU and both
//!   generators the other one, or each server shares a CPU with its generator, and they swap after each
//!   round. (L. Bulej and others, *Duet Benchmarking*, ICPE 2020, <https://doi.org/10.1145/3358960.3379132>)
//!
//! Every round has a server of its own. Each order takes its turn beside each neighbour, again and again.
//!
//! `cargo run -p studies --bin orders -- 6` (times)

use std::thread;
use std::time::Duration;

use duel::figures;
use duel::placement::Placement;
use duel::statistics::{self, Side, mean_ratio};
use duel::traffic::Traffic;
use measurement::claim::{PROBLEM, SOLUTION};
use studies::{Failed, beside_a_busy_loop};

const CHAPTERS: [u32; 2] = [3, 4];
/// Rounds of a measurement.
const ROUNDS: u32 = 6;
const ORDERS: [&str; 4] = [
    "triplets",
    "ABBA",
    "duet, servers on one CPU",
    "duet, a CPU for each",
];
const NEIGHBOURS: [&str; 3] = [
    "nothing else",
    "a busy loop anywhere",
    "a loop on the servers' CPU, on and off",
];

/// A chapter's load, and where its servers run.
struct Study {
    chapter: u32,
    load: Traffic,
    placement: Placement,
}

fn main() -> Result<(), Failed> {
    let times = studies::argument(1, 6)?;
    studies::compile(&CHAPTERS)?;
    // By chapter, neighbour and order.
    let mut effects: [[[Vec<f64>; 4]; 3]; 2] = Default::default();
    for time in 0..times {
        eprintln!("{} of {times}", time + 1);
        for (chapter, effects) in CHAPTERS.into_iter().zip(&mut effects) {
            let study = Study::of(chapter)?;
            for (neighbour, effects) in effects.iter_mut().enumerate() {
                for (order, effects) in effects.iter_mut().enumerate() {
                    let ratios = study.beside(neighbour, order)?;
                    effects.push(mean_ratio(&ratios).ok_or("no ratio")?);
                }
            }
        }
    }

    println!(
        "| chapter | beside | order | effect | spread of a measurement | against triplets beside nothing |"
    );
    println!("| ---: | --- | --- | ---: | ---: | ---: |");
    for (chapter, effects) in CHAPTERS.into_iter().zip(&effects) {
        let undisturbed = mean_ratio(&effects[0][0]).ok_or("no effect")?;
        for (neighbour, effects) in NEIGHBOURS.into_iter().zip(effects) {
            for (order, effects) in ORDERS.into_iter().zip(effects) {
                let effect = mean_ratio(effects).ok_or("no effect")?;
                println!(
                    "| {chapter} | {neighbour} | {order} | {} | {} | {} |",
                    figures::ratio(effect),
                    figures::percent(spread(effects)),
                    figures::percent(effect / undisturbed),
                );
            }
        }
    }
    studies::print_provenance(&format!(
        "{times} measurements a row, each of {ROUNDS} rounds of 1 s"
    ));
    Ok(())
}

impl Study {
    fn of(chapter: u32) -> Result<Self, Failed> {
        let file = studies::chapter_file(chapter)?;
        let placement = Placement::apart();
        if placement.server.is_empty() {
            return Err("two CPUs are needed, and a system that pins threads".into());
        }
        let load = Traffic {
            duration: Duration::from_secs(1),
            ..file.load_of(file.effect_scenario())
        };
        Ok(Self {
            chapter,
            load,
            placement,
        })
    }

    /// A measurement beside one of the neighbours.
    fn beside(&self, neighbour: usize, order: usize) -> Result<Vec<f64>, Failed> {
        let measure = || self.measure(order);
        match neighbour {
            0 => measure(),
            1 => beside_a_busy_loop(&[], false, measure),
            _ => beside_a_busy_loop(&self.placement.server, true, measure),
        }
    }

    /// The ratios of requests per second, the fix's to the problem's: one for each pair of rounds.
    fn measure(&self, order: usize) -> Result<Vec<f64>, Failed> {
        let Placement { server, generator } = &self.placement;
        match order {
            0 => statistics::triplets(ROUNDS / 3)
                .map(|sides| self.in_turn(&sides))
                .collect(),
            1 => statistics::abba(Side::Base, Side::Change, ROUNDS / 2)
                .collect::<Vec<_>>()
                .chunks(2)
                .map(|sides| self.in_turn(sides))
                .collect(),
            2 => (0..ROUNDS)
                .map(|_| self.both([server, generator], [server, generator]))
                .collect(),
            _ => (0..ROUNDS)
                .map(|round| match round % 2 {
                    0 => self.both([server, server], [generator, generator]),
                    _ => self.both([generator, generator], [server, server]),
                })
                .collect(),
        }
    }

    /// The ratio of problem and fix, one after the other.
    fn in_turn(&self, sides: &[Side]) -> Result<f64, Failed> {
        let cpus = [&self.placement.server, &self.placement.generator];
        let (mut problem, mut fix) = (f64::NAN, f64::NAN);
        for side in sides {
            match side {
                Side::Base => problem = self.rate(PROBLEM, cpus)?,
                Side::Change => fix = self.rate(SOLUTION, cpus)?,
                Side::Again => _ = self.rate(SOLUTION, cpus)?,
            }
        }
        Ok(fix / problem)
    }

    /// The ratio of problem and fix at the same time, each with CPUs for its server and its generator.
    fn both(&self, problem: [&Vec<usize>; 2], fix: [&Vec<usize>; 2]) -> Result<f64, Failed> {
        thread::scope(|scope| {
            let problem = scope.spawn(|| self.rate(PROBLEM, problem));
            let fix = self.rate(SOLUTION, fix)?;
            Ok(fix
                / problem
                    .join()
                    .map_err(|_| "the problem's round panicked")??)
        })
    }

    /// Requests per second of a fresh server on the first CPUs, asked from the second.
    fn rate(&self, variant: &str, [server, generator]: [&Vec<usize>; 2]) -> Result<f64, Failed> {
        let server = studies::start(self.chapter, variant, server, &[])?;
        Ok(studies::load(&server, &self.load, generator)?.requests_per_second)
    }
}

/// How far one measurement lies from another as a rule: the standard deviation of the logarithms.
fn spread(effects: &[f64]) -> f64 {
    let logarithms: Vec<f64> = effects.iter().map(|effect| effect.ln()).collect();
    let count = logarithms.len() as f64;
    let mean = logarithms.iter().sum::<f64>() / count;
    let squares = logarithms.iter().map(|value| (value - mean).powi(2));
    (squares.sum::<f64>() / (count - 1.0)).sqrt().exp() - 1.0
}
