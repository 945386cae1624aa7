//! Which order of rounds finds the same effect again most closely, in the same time. Prints Markdown for
//! the book, whose recorded run is `flamegraphs/measuring/orders.md`:
//!
//! ```text
//! cargo build -p chapter3 -p chapter4
//! cargo run -p bench --example orders -- [TIMES]
//! ```
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

mod shared;

use std::error::Error;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use analysis::statistics::{self, Side};
use bench::placement::Placement;
use loadgen::interrupt::Interrupt;
use loadgen::{Settings, cpus};
use measurement::chapter_file::ChapterFile;
use measurement::claim::{PROBLEM, SOLUTION};
use measurement::figures;
use measurement::load::Load;

/// Rounds of a measurement.
const ROUNDS: u32 = 6;
/// The package, and the folder of its file.
const CHAPTERS: [(&str, &str); 2] = [
    ("chapter3", "chapters/3-clone-in-hot-loop"),
    ("chapter4", "chapters/4-client-per-request"),
];

type Measured<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// How the rounds of a measurement follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Triplets,
    Abba,
    DuetOnOneCpu,
    DuetOnACpuEach,
}

/// What else runs meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Neighbour {
    Nobody,
    /// A busy loop, wherever the system puts it.
    Anywhere,
    /// A busy loop on the CPU of the servers, on and off.
    OnAndOff,
}

const ORDERS: [(Order, &str); 4] = [
    (Order::Triplets, "triplets"),
    (Order::Abba, "ABBA"),
    (Order::DuetOnOneCpu, "duet, servers on one CPU"),
    (Order::DuetOnACpuEach, "duet, a CPU for each"),
];
const NEIGHBOURS: [(Neighbour, &str); 3] = [
    (Neighbour::Nobody, "nothing else"),
    (Neighbour::Anywhere, "a busy loop anywhere"),
    (
        Neighbour::OnAndOff,
        "a loop on the servers' CPU, on and off",
    ),
];

/// A chapter's servers and the load on them.
struct Servers<'a> {
    package: &'a str,
    load: Load,
    placement: &'a Placement,
    interrupt: &'a Interrupt,
}

fn main() -> Measured<()> {
    let times = shared::argument(1, 6)?;
    let placement = Placement::apart();
    let interrupt = Interrupt::new();
    if placement.server.is_empty() {
        return Err("two CPUs are needed, and a system that pins threads".into());
    }
    let mut servers = Vec::new();
    for (package, folder) in CHAPTERS {
        let file = format!("{folder}/chapter.toml");
        let chapter = ChapterFile::read(Path::new(&file), &file, cpus::count())?;
        let scenario = chapter.claims.effect().scenario();
        let scenario = chapter.scenario(scenario).ok_or("no scenario")?;
        servers.push(Servers {
            package,
            load: Load {
                duration: Duration::from_secs(1),
                ..chapter.load_of(scenario)
            },
            placement: &placement,
            interrupt: &interrupt,
        });
    }
    // By chapter, neighbour and order.
    let mut effects: [[[Vec<f64>; ORDERS.len()]; NEIGHBOURS.len()]; CHAPTERS.len()] =
        Default::default();
    for time in 0..times {
        eprintln!("{} of {times}", time + 1);
        for (servers, effects) in servers.iter().zip(&mut effects) {
            for ((neighbour, _), effects) in NEIGHBOURS.into_iter().zip(effects) {
                for ((order, _), effects) in ORDERS.into_iter().zip(effects) {
                    let ratios = beside(neighbour, &placement, || servers.measure(order))?;
                    effects.push(statistics::mean_ratio(&ratios).ok_or("no ratio")?);
                }
            }
        }
    }

    println!(
        "| chapter | beside | order | effect | spread of a measurement | against triplets beside nothing |"
    );
    println!("| ---: | --- | --- | ---: | ---: | ---: |");
    for ((package, _), effects) in CHAPTERS.into_iter().zip(&effects) {
        let undisturbed = statistics::mean_ratio(&effects[0][0]).ok_or("no effect")?;
        for ((_, neighbour), effects) in NEIGHBOURS.into_iter().zip(effects) {
            for ((_, order), effects) in ORDERS.into_iter().zip(effects) {
                let effect = statistics::mean_ratio(effects).ok_or("no effect")?;
                println!(
                    "| {} | {neighbour} | {order} | {} | {} | {} |",
                    package.trim_start_matches("chapter"),
                    figures::ratio(effect),
                    figures::percent(spread(effects)),
                    figures::percent(effect / undisturbed),
                );
            }
        }
    }
    shared::print_provenance(
        &format!("{times} measurements a row, each of {ROUNDS} rounds of 1 s"),
        &format!("orders -- {times}"),
        true,
    );
    Ok(())
}

impl Servers<'_> {
    /// The ratios of requests per second, the fix's to the problem's: one for each pair of rounds.
    fn measure(&self, order: Order) -> Measured<Vec<f64>> {
        let Placement { server, generator } = self.placement;
        match order {
            Order::Triplets => statistics::triplets(ROUNDS / 3)
                .map(|sides| self.in_turn(&sides))
                .collect(),
            Order::Abba => statistics::abba(Side::Problem, Side::Fix, ROUNDS / 2)
                .collect::<Vec<_>>()
                .chunks(2)
                .map(|sides| self.in_turn(sides))
                .collect(),
            Order::DuetOnOneCpu => (0..ROUNDS)
                .map(|_| self.both((server, generator), (server, generator)))
                .collect(),
            Order::DuetOnACpuEach => (0..ROUNDS)
                .map(|round| {
                    let (one, other) = ((server, server), (generator, generator));
                    if round % 2 == 0 {
                        self.both(one, other)
                    } else {
                        self.both(other, one)
                    }
                })
                .collect(),
        }
    }

    /// The ratio of problem and fix, one after the other.
    fn in_turn(&self, sides: &[Side]) -> Measured<f64> {
        let Placement { server, generator } = self.placement;
        let (mut problem, mut fix) = (f64::NAN, f64::NAN);
        for side in sides {
            match side {
                Side::Problem => problem = self.rate(PROBLEM, server, generator)?,
                Side::Fix => fix = self.rate(SOLUTION, server, generator)?,
                Side::Again => _ = self.rate(SOLUTION, server, generator)?,
            }
        }
        Ok(fix / problem)
    }

    /// The ratio of problem and fix at the same time, each with CPUs for its server and its generator.
    fn both(
        &self,
        problem: (&Vec<usize>, &Vec<usize>),
        fix: (&Vec<usize>, &Vec<usize>),
    ) -> Measured<f64> {
        let (problem, fix) = thread::scope(|scope| {
            let problem = scope.spawn(|| self.rate(PROBLEM, problem.0, problem.1));
            let fix = self.rate(SOLUTION, fix.0, fix.1);
            (problem.join(), fix)
        });
        let problem = problem.map_err(|_| "the problem's round panicked")??;
        Ok(fix? / problem)
    }

    /// Requests per second of a fresh server.
    fn rate(&self, variant: &str, server: &[usize], generator: &[usize]) -> Measured<f64> {
        let started = shared::start(self.package, variant, server, self.interrupt);
        let server = started.map_err(|error| error.to_string())?;
        let settings = Settings {
            cpus: generator,
            interrupt: self.interrupt,
            progress: None,
        };
        Ok(loadgen::run(server.service(), &self.load, &settings)?.requests_per_second)
    }
}

/// Does `work` while the neighbour is there.
fn beside<T>(neighbour: Neighbour, placement: &Placement, work: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        if neighbour != Neighbour::Nobody {
            scope.spawn(|| disturb(neighbour, &placement.server, &is_over));
        }
        let done = work();
        is_over.store(true, Ordering::Relaxed);
        done
    })
}

/// Keeps a CPU busy until it is over: all the time, or for 0.2 to 2 s after each pause of 0.2 to 2 s.
fn disturb(neighbour: Neighbour, cpus: &[usize], is_over: &AtomicBool) {
    /// Its multiples never come back to the same fraction: spans that look like chance, the same each time.
    const GOLDEN: f64 = 0.618_033_988_749_895;

    let is_pinned = neighbour == Neighbour::OnAndOff;
    if is_pinned && let Err(error) = cpus::pin_current_thread(cpus) {
        eprintln!("the neighbour goes where it likes: {error}");
    }
    for span in 1_u32.. {
        let seconds = 0.2 + 1.8 * (f64::from(span) * GOLDEN).fract();
        let end = Instant::now() + Duration::from_secs_f64(seconds);
        let is_idle = is_pinned && span % 2 == 0;
        while Instant::now() < end {
            if is_over.load(Ordering::Relaxed) {
                return;
            }
            if is_idle {
                thread::sleep(Duration::from_millis(10));
            }
        }
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
