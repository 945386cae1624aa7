//! What a cure may cost: throughput that must not be lost, threads and memory that must not be spent.

use serde::{Deserialize, Serialize};

use crate::share;
use measurement::{
    chapter_file::ChapterFile,
    claim::{Limit, Metric, PROBLEM, SOLUTION},
    figures,
    outcome::Outcome,
    record::{Purpose, Record, Round, pairs},
};

/// What the solution did cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PriceFinding {
    /// Solution to problem in requests a second: the median of the pairs.
    pub throughput: Option<f64>,
    /// Its 95 % interval.
    pub interval: Option<(f64, f64)>,
    /// The claimed share.
    pub claimed: f64,
    /// Each limit with the highest readings of problem and solution.
    pub limits: Vec<LimitFinding>,
}

/// A limit, and what was read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LimitFinding {
    /// The claim.
    pub limit: Limit,
    /// The problem's highest reading, which nothing is claimed of.
    pub problem: Option<f64>,
    /// The solution's highest reading; `None` when a round lacks it.
    pub solution: Option<f64>,
}

impl PriceFinding {
    /// `None` for a chapter without a `[price]`.
    pub(crate) fn of(record: &Record) -> Option<Self> {
        let price = record.chapter.price.as_ref()?;
        let rounds: Vec<&Round> = record.rounds_for(Purpose::Effect).collect();
        let of_pair = |pair: Option<(&Round, &Round)>| {
            let (problem, solution) = pair?;
            throughput(&problem.outcome, &solution.outcome)
        };
        let ratios: Option<Vec<f64>> = pairs(&rounds).into_iter().map(of_pair).collect();
        let limits = price.limits.iter().map(|limit| LimitFinding {
            limit: limit.clone(),
            problem: highest(&rounds, PROBLEM, &limit.metric),
            solution: highest(&rounds, SOLUTION, &limit.metric),
        });
        let (throughput, interval) = share::of_pairs(ratios.as_deref(), record.seed);
        Some(Self {
            throughput,
            interval,
            claimed: price.throughput_share,
            limits: limits.collect(),
        })
    }

    /// What the solution cost too much of.
    pub(crate) fn shortfall(&self) -> Option<String> {
        let kept = ("kept", "the problem's requests a second");
        share::shortfall(kept, self.throughput, self.interval, self.claimed)
            .or_else(|| self.limits.iter().find_map(LimitFinding::broken))
    }
}

impl LimitFinding {
    fn broken(&self) -> Option<String> {
        let Limit {
            name,
            metric,
            at_most,
            where_told,
        } = &self.limit;
        let Some(reading) = self.solution else {
            return (!where_told).then(|| format!("the solution did not report `{metric}`."));
        };
        (reading.is_nan() || reading > *at_most).then(|| {
            format!(
                "{name}: {} in the solution, but at most {} was claimed.",
                figures::count(reading),
                figures::count(*at_most)
            )
        })
    }
}

/// What an exercise lost too much of, beside the problem in the same check.
pub(crate) fn too_dear(
    chapter: &ChapterFile,
    problem: &Outcome,
    exercise: &Outcome,
) -> Option<String> {
    let needed = chapter.price.as_ref()?.check_throughput_share;
    let share = throughput(problem, exercise);
    share.is_none_or(|share| share < needed).then(|| {
        format!(
            "the exercise kept {} of the problem's requests a second, but {} is needed.",
            share.map_or_else(|| "an unknown share".to_owned(), figures::percent),
            figures::percent(needed)
        )
    })
}

fn throughput(problem: &Outcome, other: &Outcome) -> Option<f64> {
    Metric::RequestsPerSecond.ratio(problem, other)
}

/// The highest reading of a variant's rounds; `None` if one of them has none.
fn highest(rounds: &[&Round], variant: &str, metric: &str) -> Option<f64> {
    let readings: Option<Vec<f64>> = rounds
        .iter()
        .filter(|round| round.variant == variant)
        .map(|round| round.readings.get(metric).copied())
        .collect();
    readings?.into_iter().reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> Limit {
        Limit {
            name: "peak memory in bytes".to_owned(),
            metric: "process_memory_peak_bytes".to_owned(),
            at_most: 1000.0,
            where_told: false,
        }
    }

    fn finding(low: f64, reading: Option<f64>) -> PriceFinding {
        PriceFinding {
            throughput: Some(low + 0.02),
            interval: Some((low, low + 0.05)),
            claimed: 0.9,
            limits: vec![LimitFinding {
                limit: memory(),
                problem: Some(1.0),
                solution: reading,
            }],
        }
    }

    #[test]
    fn a_cure_may_cost_what_was_claimed_and_no_more() {
        assert_eq!(finding(0.95, Some(1000.0)).shortfall(), None);
        for (finding, words) in [
            (finding(0.85, Some(1.0)), "kept 87 %"),
            (finding(0.95, Some(1001.0)), "peak memory in bytes: 1,001"),
            (finding(0.95, None), "did not report"),
            (finding(f64::NAN, Some(1.0)), "nowhere"),
            (finding(0.95, Some(f64::NAN)), "at most 1,000"),
        ] {
            let said = finding.shortfall().expect("it is too dear");
            assert!(said.contains(words), "{said}");
        }
    }
}
