//! The published benchmark of blocking strategies, with what it left out, a timer on the same runtime: `blocking.md`.
//!
//! A batch of operations runs at once, by one strategy, again and again. The published figure is the time of a batch.
//! Cells of the table take turns, there and back, so that a machine that slowly changes favours none of them.
//!
//! `cargo run -p studies --bin blocking`: two minutes.

use std::hint::black_box;
use std::time::{Duration, Instant};

use statistics::figures;
use studies::strategies::{Blocking, Strategy, Timer};
use studies::{Failed, published, quantile};
use tokio::task::JoinSet;

/// Length of each cell in a round, and number of rounds.
const SPAN: Duration = Duration::from_secs(1);
const ROUNDS: usize = 6;
/// Microseconds of the published sleeps. The kernel adds its timer's slack, about 50.
const SLEEPS: [u64; 10] = [1, 2, 3, 4, 5, 6, 7, 8, 12, 49];

const STRATEGIES: [Strategy; 6] = [
    Strategy::Direct,
    Strategy::Permit,
    Strategy::Dispatch,
    Strategy::SpawnBlocking,
    Strategy::DispatchOrRun,
    Strategy::IntrusivePermit,
];

/// Work of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    /// Nothing: what is left is the strategy's own cost.
    Noop,
    /// Shuffles and sorts 300 numbers.
    Expensive,
    /// Sleeps for some microseconds.
    Sleep,
}

impl Work {
    fn name(self) -> &'static str {
        match self {
            Self::Noop => "noop",
            Self::Expensive => "expensive",
            Self::Sleep => "sleep",
        }
    }

    /// The published numbers: operations of a batch, and threads or permits beside the four workers.
    fn size(self) -> (usize, usize) {
        match self {
            Self::Noop | Self::Expensive => (100, 4),
            Self::Sleep => (200, 40),
        }
    }

    /// Does the `number`-th operation of a batch.
    fn run(self, number: usize) {
        match self {
            Self::Noop => _ = black_box(number),
            Self::Expensive => {
                let mut numbers: [usize; 300] = std::array::from_fn(|index| index);
                fastrand::Rng::with_seed(number as u64).shuffle(&mut numbers);
                black_box(&mut numbers).sort_unstable();
                black_box(&numbers);
            }
            Self::Sleep => {
                let micros = SLEEPS[number % SLEEPS.len()];
                std::thread::sleep(Duration::from_micros(micros));
            }
        }
    }
}

/// An operation by one strategy, and what was measured of it.
struct Cell {
    work: Work,
    strategy: Strategy,
    batches_ms: Vec<f64>,
    late_ms: Vec<f64>,
    operations: u64,
    run_by_callers: u64,
}

impl Cell {
    fn new(work: Work, strategy: Strategy) -> Self {
        Self {
            work,
            strategy,
            batches_ms: Vec::new(),
            late_ms: Vec::new(),
            operations: 0,
            run_by_callers: 0,
        }
    }

    /// Median time of a batch in ms.
    fn batch(&self) -> f64 {
        quantile(&self.batches_ms, 0.5)
    }

    /// Runs batch after batch for a round.
    fn run(&mut self) -> Result<(), Failed> {
        let (size, extra) = self.work.size();
        let (runtime, by) = Blocking::start(self.strategy, 4, extra)?;
        let timer = Timer::start(&runtime);
        let work = self.work;
        let began = Instant::now();
        while began.elapsed() < SPAN {
            let batch_began = Instant::now();
            let mut batch = JoinSet::new();
            for number in 0..size {
                let by = by.clone();
                batch.spawn_on(
                    async move { by.run(move || work.run(number)).await },
                    runtime.handle(),
                );
            }
            while let Some(ended) = runtime.block_on(batch.join_next()) {
                ended??;
            }
            self.batches_ms
                .push(batch_began.elapsed().as_secs_f64() * 1e3);
            self.operations += size as u64;
        }
        self.late_ms.extend(timer.stop());
        self.run_by_callers += by.run_by_callers();
        Ok(())
    }
}

fn main() -> Result<(), Failed> {
    let mut cells = Vec::new();
    for work in [Work::Noop, Work::Expensive, Work::Sleep] {
        cells.extend(STRATEGIES.map(|strategy| Cell::new(work, strategy)));
    }
    for round in 0..ROUNDS {
        eprintln!("round {} of {ROUNDS}", round + 1);
        let mut order: Vec<&mut Cell> = cells.iter_mut().collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for cell in order {
            cell.run()?;
        }
    }
    print(&cells)?;
    studies::print_provenance(&format!(
        "Medians of {ROUNDS} rounds of {} s; 100 operations at once with 4 + 4 threads, 200 with 4 + 40 where they sleep",
        SPAN.as_secs()
    ));
    Ok(())
}

fn print(cells: &[Cell]) -> Result<(), Failed> {
    let theirs = published("blocking_strategies")?;
    println!(
        "| work | strategy | a batch | times `direct` | published elsewhere | timer late, p99 | run by callers |"
    );
    println!("| --- | --- | ---: | ---: | ---: | ---: | ---: |");
    for of_work in cells.chunks(STRATEGIES.len()) {
        for cell in of_work {
            let (work, strategy) = (cell.work.name(), cell.strategy.name());
            let times = match (
                published_ns(&theirs, work, cell.strategy),
                published_ns(&theirs, work, Strategy::Direct),
            ) {
                (Some(this), Some(direct)) => format!("{:.2}", this / direct),
                _ => String::new(),
            };
            let run_by_callers = match cell.strategy {
                Strategy::DispatchOrRun => {
                    figures::percent(cell.run_by_callers as f64 / cell.operations as f64)
                }
                _ => String::new(),
            };
            println!(
                "| {work} | {strategy} | {} µs | {:.2} | {times} | {} | {run_by_callers} |",
                figures::count((cell.batch() * 1e3).round()),
                cell.batch() / of_work[0].batch(),
                figures::milliseconds(quantile(&cell.late_ms, 0.99)),
            );
        }
    }
    Ok(())
}

/// Reads the published nanoseconds of a batch. None were published of a short queue.
fn published_ns(theirs: &toml::Table, work: &str, strategy: Strategy) -> Option<f64> {
    let of_work = theirs["ns_per_iter"].get(work)?;
    let ns = match strategy {
        Strategy::DispatchOrRun => None,
        Strategy::IntrusivePermit => theirs["semaphore_comparison_ns"].get(work),
        Strategy::Dispatch => of_work.get("dispatch_rx"),
        _ => of_work.get(strategy.name()),
    };
    Some(ns?.as_integer()? as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_figures_are_found_by_work_and_strategy() {
        let theirs = published("blocking_strategies").unwrap();
        let ns = |work, strategy| published_ns(&theirs, work, strategy);
        assert_eq!(ns("noop", Strategy::Dispatch), Some(159_234.0));
        assert_eq!(ns("sleep", Strategy::SpawnBlocking), Some(1_624_739.0));
        assert_eq!(ns("sleep", Strategy::IntrusivePermit), Some(6_811_144.0));
        assert_eq!(ns("noop", Strategy::DispatchOrRun), None);
    }
}
