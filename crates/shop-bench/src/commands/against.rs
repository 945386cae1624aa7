//! `cargo workshop capstone bench --against COMMIT`: compares the shop with that of a commit, with an interval.

use std::time::{Duration, Instant};

use duel::report::{Comparison, Side as Named};
use engine::load::interrupt::Interrupt;
use engine::metric::{Figures, Metric, Round, Unit};
use engine::statistics::{Looks, Side, triplet};
use engine::verdict::{DEFAULT_MARGIN, Goal, Verdict, Word, judge};
use terminal::exit::{CliError, Exit};
use terminal::json;
use terminal::output::Format;

use super::bench::{Length, measure, test};
use crate::cli::Bench;
use crate::others::Others;
use crate::shop::Shop;

/// Number of rounds after which an undecided comparison is inconclusive.
const MOST_ROUNDS: u32 = 12;
/// Rounds after which the CPU time of a journey may decide: scores have had their chance.
const CPU_DECIDES_FROM: u32 = 6;
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
    let metrics = [score(), cpu()];
    let (mut of_base, mut of_change) = (None, None);
    let mut rounds = Vec::new();
    let (metric, verdict) = loop {
        let number = u32::try_from(rounds.len()).unwrap_or(u32::MAX);
        let mut round = Round::default();
        for side in triplet(number) {
            let (built, users, figures) = match side {
                Side::Base => (&base, &mut of_base, &mut round.base),
                Side::Again => (&base, &mut of_base, &mut round.again),
                Side::Change => (&change, &mut of_change, &mut round.change),
            };
            let length = Length {
                time: Duration::from_secs(options.seconds),
                users: *users,
            };
            let score = measure(built, &payments, length, false, &|_| (), interrupt)?;
            *users = Some(score.users);
            figures.insert(metrics[0].key.clone(), score.score);
            if let Some(cpu_ms) = score.costs.cpu_ms {
                figures.insert(metrics[1].key.clone(), cpu_ms);
            }
        }
        let told = |of: &Figures| {
            let [score, cpu] = metrics
                .each_ref()
                .map(|metric| of.get(&metric.key).unwrap_or(0.0));
            format!("{score:.1} ({cpu:.2} CPU ms)")
        };
        eprintln!(
            "round {}: {revision} {}, the shop here {}, {revision} again {}",
            number + 1,
            told(&round.base),
            told(&round.change),
            told(&round.again)
        );
        rounds.push(round);
        if let Some(decided) = decided(&metrics, &rounds) {
            break decided;
        }
    };
    let named = |name: &str, commit| Named {
        name: name.to_owned(),
        commit,
        program: None,
    };
    let sides = (named(revision, Some(commit)), named("capstone/", None));
    let seconds = began.elapsed().as_secs_f64();
    let comparison = Comparison::new(&verdict, &[], seconds, metric, &metrics, &rounds, sides);
    match format {
        Format::Json => json::print(&comparison)?,
        Format::Human => println!("{}", comparison.text()),
    }
    Ok(match verdict.word {
        Word::Invalid => Exit::Invalid,
        _ if verdict.is_good => Exit::Good,
        _ => Exit::Bad,
    })
}

/// The verdict, once there is one: by the score, or by the CPU time of a journey where the score cannot tell.
fn decided<'a>(metrics: &'a [Metric; 2], rounds: &[Round]) -> Option<(&'a Metric, Verdict)> {
    let counted = u32::try_from(rounds.len()).unwrap_or(u32::MAX);
    let is_last = counted >= MOST_ROUNDS;
    if !is_last && !Looks::COMPARISON.is_one(counted) {
        return None;
    }
    let goal = Goal::Difference {
        margin: DEFAULT_MARGIN,
    };
    let [score, cpu] = metrics;
    let by_score = judge(score, goal, rounds);
    if by_score.word != Word::Inconclusive {
        return Some((score, by_score));
    }
    let has_cpu = rounds
        .iter()
        .all(|round| round.change.get(&cpu.key).is_some());
    if has_cpu && counted >= CPU_DECIDES_FROM {
        let goal = Goal::Difference { margin: CPU_MARGIN };
        let by_cpu = judge(cpu, goal, rounds);
        if !matches!(by_cpu.word, Word::Inconclusive | Word::Invalid) {
            return Some((cpu, by_cpu));
        }
    }
    is_last.then_some((score, by_score))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(count: usize, of: impl Fn(usize) -> [(f64, f64); 3]) -> Vec<Round> {
        let figures = |(score, cpu): (f64, f64)| {
            let mut figures = Figures::default();
            figures.insert("score".to_owned(), score);
            figures.insert("cpu_ms_per_journey".to_owned(), cpu);
            figures
        };
        let round = |number| {
            let [base, change, again] = of(number).map(figures);
            Round {
                base,
                change,
                again,
            }
        };
        (0..count).map(round).collect()
    }

    /// Scores waver by a third, and the CPU time of a journey by a hundredth.
    fn wavering(number: usize) -> [(f64, f64); 3] {
        let even = number % 2 == 0;
        let (low, high) = if even { (80.0, 120.0) } else { (120.0, 80.0) };
        let cpu = if even { 4.0 } else { 4.04 };
        [(low, cpu), (high, cpu * 0.93), (high, cpu * 1.005)]
    }

    #[test]
    fn cpu_time_decides_where_the_score_cannot() {
        let metrics = [score(), cpu()];
        let mut found = None;
        for count in 1..=12 {
            found = decided(&metrics, &rounds(count, wavering));
            if found.is_some() {
                break;
            }
        }
        let (metric, verdict) = found.unwrap();
        assert_eq!(metric.key, "cpu_ms_per_journey");
        assert_eq!(verdict.word, Word::Faster);
    }

    #[test]
    fn a_score_that_differs_decides_by_itself() {
        let metrics = [score(), cpu()];
        let twice = |_| [(80.0, 4.0), (160.0, 4.4), (81.0, 4.0)];
        let mut found = None;
        for count in 1..=12 {
            found = decided(&metrics, &rounds(count, twice));
            if found.is_some() {
                break;
            }
        }
        assert_eq!(found.unwrap().0.key, "score");
    }
}
