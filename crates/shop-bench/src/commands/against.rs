//! `cargo workshop capstone bench --against COMMIT`: compares the shop with that of a commit, with an interval.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use children::Interrupt;
use duel::report::{Comparison, Side as Named};
use statistics::metric::{Metric, Triplet, Unit};
use statistics::rounds::{Rounds, run_until_decided};
use statistics::verdict::{Goal, Speed, Verdict, judge};
use statistics::{Looks, Side};
use terminal::exit::{CliError, Exit};
use terminal::json;
use terminal::output::Format;

use super::bench::{Length, measure, test};
use crate::cli::Bench;
use crate::others::Others;
use crate::shop::{Built, Shop};

/// Number of rounds after which an undecided comparison is inconclusive.
const MOST_ROUNDS: u32 = 12;
/// Rounds after which the CPU time of a journey may decide: scores have had their chance.
const CPU_DECIDES_FROM: usize = 6;
/// Smallest share by which the CPU time must differ to count as different.
const CPU_MARGIN: f64 = 0.01;

/// The metric of the score: worth of journeys per second.
fn score() -> Metric {
    Metric {
        key: "score".to_owned(),
        label: "score".to_owned(),
        unit: Unit::Count,
        larger_is_better: Some(true),
    }
}

/// CPU time of the shop for a journey, which noise hardly touches.
fn cpu() -> Metric {
    Metric {
        key: "cpu_ms_per_journey".to_owned(),
        label: "CPU time of a journey".to_owned(),
        unit: Unit::Ms,
        larger_is_better: Some(false),
    }
}

/// Compares the shop that lies here with that of a commit.
///
/// # Errors
///
/// Returns an error if one of them cannot be measured.
pub fn run(
    shop: &Shop,
    options: &Bench,
    revision: &str,
    format: Format,
    interrupt: &Interrupt,
) -> Result<Exit, CliError> {
    let others = Others::open(shop)?;
    let commit = others.commit(revision)?;
    if !options.no_tests {
        test(shop, interrupt)??;
    }
    let began = Instant::now();
    let payments = shop.built("payments", interrupt)?;
    let (base, change) = (others.shop(&commit.hash, interrupt)?, shop.here(interrupt)?);
    let [base, change] = [base, change].map(|built| Compared { built, users: None });
    let mut duel = Duel {
        revision,
        base,
        change,
        payments: &payments,
        time: Duration::from_secs(options.seconds),
        interrupt,
        metrics: [score(), cpu()],
        rounds: Vec::new(),
    };
    run_until_decided(&mut duel, Looks::COMPARISON)?;
    let Duel {
        metrics, rounds, ..
    } = duel;
    let (metric, verdict) = judged(&metrics, &rounds);
    let [before, here] =
        [(revision, Some(commit)), ("capstone/", None)].map(|(name, commit)| Named {
            name: name.to_owned(),
            commit,
            program: None,
        });
    let seconds = began.elapsed().as_secs_f64();
    let comparison = Comparison::new(
        &verdict,
        &[],
        seconds,
        metric,
        &metrics,
        &rounds,
        (before, here),
    );
    match format {
        Format::Json => json::print_as("comparison", &comparison)?,
        Format::Human => println!("{}", comparison.text()),
    }
    Ok(match verdict.kind {
        Speed::Invalid => Exit::Invalid,
        _ if verdict.is_good => Exit::Good,
        _ => Exit::Bad,
    })
}

/// A shop that is compared, with the number of users that it had last.
struct Compared {
    built: Built,
    users: Option<f64>,
}

/// The comparison of two shops under way.
struct Duel<'a> {
    revision: &'a str,
    base: Compared,
    change: Compared,
    payments: &'a Path,
    time: Duration,
    interrupt: &'a Interrupt,
    metrics: [Metric; 2],
    rounds: Vec<Triplet>,
}

impl Rounds for Duel<'_> {
    type Error = CliError;

    fn run(&mut self, number: u32, order: [Side; 3]) -> Result<ControlFlow<()>, CliError> {
        let revision = self.revision;
        let [score_key, cpu_key] = self.metrics.each_ref().map(|metric| &metric.key);
        let mut round = Triplet::default();
        for side in order {
            let (shop, figures) = match side {
                Side::Base => (&mut self.base, &mut round.base),
                Side::Again => (&mut self.base, &mut round.again),
                Side::Change => (&mut self.change, &mut round.change),
            };
            let length = Length {
                time: self.time,
                users: shop.users,
            };
            let (payments, interrupt) = (self.payments, self.interrupt);
            let score = measure(&shop.built, payments, length, false, interrupt)?;
            shop.users = Some(score.users);
            figures.insert(score_key.clone(), score.score);
            if let Some(cpu_ms) = score.costs.cpu_ms {
                figures.insert(cpu_key.clone(), cpu_ms);
            }
        }
        let [base, change, again] = [&round.base, &round.change, &round.again].map(|figures| {
            let [score, cpu] = [score_key, cpu_key].map(|key| figures.get(key).unwrap_or(0.0));
            format!("{score:.1} ({cpu:.2} CPU ms)")
        });
        eprintln!(
            "round {}: {revision} {base}, the shop here {change}, {revision} again {again}",
            number + 1
        );
        self.rounds.push(round);
        if self.counted() >= MOST_ROUNDS {
            return Ok(ControlFlow::Break(()));
        }
        Ok(ControlFlow::Continue(()))
    }

    fn counted(&self) -> u32 {
        u32::try_from(self.rounds.len()).unwrap_or(u32::MAX)
    }

    fn are_decisive(&mut self) -> bool {
        judged(&self.metrics, &self.rounds).1.kind != Speed::Inconclusive
    }
}

/// Returns the metric that decides, and its verdict: the score, or the CPU time of a journey where the score cannot
/// tell.
fn judged<'a>(metrics: &'a [Metric; 2], rounds: &[Triplet]) -> (&'a Metric, Verdict<Speed>) {
    let [score, cpu] = metrics;
    let by_score = judge(score, Goal::default(), rounds);
    let has_cpu = rounds
        .iter()
        .all(|round| round.change.get(&cpu.key).is_some());
    if by_score.kind == Speed::Inconclusive && has_cpu && rounds.len() >= CPU_DECIDES_FROM {
        let margin = CPU_MARGIN;
        let by_cpu = judge(cpu, Goal::Difference { margin }, rounds);
        if !matches!(by_cpu.kind, Speed::Inconclusive | Speed::Invalid) {
            return (cpu, by_cpu);
        }
    }
    (score, by_score)
}

#[cfg(test)]
mod tests {
    use super::*;
    use statistics::metric::Figures;

    fn rounds(count: usize, of: impl Fn(usize) -> [(f64, f64); 3]) -> Vec<Triplet> {
        let figures = |(score, cpu): (f64, f64)| {
            let mut figures = Figures::default();
            figures.insert("score".to_owned(), score);
            figures.insert("cpu_ms_per_journey".to_owned(), cpu);
            figures
        };
        let round = |number| {
            let [base, change, again] = of(number).map(figures);
            Triplet {
                base,
                change,
                again,
                is_rebuilt: false,
            }
        };
        (0..count).map(round).collect()
    }

    /// Scores waver by a third, and the CPU time of a journey by a hundredth.
    fn wavering(number: usize) -> [(f64, f64); 3] {
        let even = number.is_multiple_of(2);
        let (low, high) = if even { (80.0, 120.0) } else { (120.0, 80.0) };
        let cpu = if even { 4.0 } else { 4.04 };
        [(low, cpu), (high, cpu * 0.93), (high, cpu * 1.005)]
    }

    fn first_decision(
        metrics: &[Metric; 2],
        of: fn(usize) -> [(f64, f64); 3],
    ) -> (&Metric, Verdict<Speed>) {
        let mut last = judged(metrics, &[]);
        for count in 1..=12 {
            last = judged(metrics, &rounds(count, of));
            if last.1.kind != Speed::Inconclusive {
                break;
            }
        }
        last
    }

    #[test]
    fn cpu_time_decides_where_the_score_cannot() {
        let metrics = [score(), cpu()];
        let found = first_decision(&metrics, wavering);
        let (metric, verdict) = found;
        assert_eq!(metric.key, "cpu_ms_per_journey");
        assert_eq!(verdict.kind, Speed::Faster);
    }

    #[test]
    fn a_score_that_differs_decides_by_itself() {
        let metrics = [score(), cpu()];
        let twice = |_| [(80.0, 4.0), (160.0, 4.4), (81.0, 4.0)];
        let found = first_decision(&metrics, twice);
        assert_eq!(found.0.key, "score");
    }
}
