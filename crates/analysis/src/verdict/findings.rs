//! The figures that a verdict rests on, computed from a record's rounds.

use serde::{Deserialize, Serialize};

use crate::{
    prediction::{Inputs, Prediction, in_setting},
    statistics,
};
use measurement::{
    chapter_file::ChapterFile,
    claim::{Bound, Metric, PROBLEM, Point, SOLUTION},
    record::{Purpose, Record, Round, pairs},
};

/// A mechanism's readings against its limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MechanismFinding {
    /// What was counted.
    pub name: String,
    /// The problem's reading nearest to breaking its limit; `None` when a round lacks one.
    pub problem: Option<f64>,
    /// The solution's reading nearest to breaking its limit; `None` when a round lacks one.
    pub solution: Option<f64>,
    /// Whether every reading of the problem kept to its limit.
    pub problem_holds: bool,
    /// Whether every reading of the solution kept to its limit.
    pub solution_holds: bool,
}

impl MechanismFinding {
    /// The rounds that it is counted in.
    pub fn purpose(chapter: &ChapterFile) -> Purpose {
        match chapter.mechanism.setting {
            Some(_) => Purpose::Mechanism,
            None => Purpose::Effect,
        }
    }

    pub(super) fn of(record: &Record) -> Self {
        let claim = &record.chapter.mechanism;
        let users = record.chapter.mechanism_users();
        let purpose = Self::purpose(&record.chapter);
        // A missing reading is as telling as one that is not a number: none.
        let worst = |variant: &str, bound: Bound| {
            bound.worst(
                record
                    .rounds_for(purpose)
                    .filter(|round| round.variant == variant)
                    .map(|round| *round.readings.get(&claim.metric).unwrap_or(&f64::NAN)),
            )
        };
        let problem = worst(PROBLEM, claim.problem);
        let solution = worst(SOLUTION, claim.solution);
        Self {
            name: claim.name.clone(),
            problem,
            solution,
            problem_holds: problem.is_some_and(|reading| claim.problem.holds(reading, users)),
            solution_holds: solution.is_some_and(|reading| claim.solution.holds(reading, users)),
        }
    }
}

/// The measured gain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EffectFinding {
    /// What was compared.
    pub metric: Metric,
    /// The claimed ratio.
    pub claimed: f64,
    /// Each pair's ratio, in the order in which they ran; `None` where a side answered nothing.
    pub pairs: Vec<Option<f64>>,
    /// The median of the pairs' ratios.
    pub ratio: Option<f64>,
    /// Its 95 % interval.
    pub interval: Option<(f64, f64)>,
    /// How far from 1 the ratio of equal servers wandered at most: 0.05 is 5 %.
    pub noise_floor: Option<f64>,
    /// What the problem gave: the median of its rounds, in the metric's unit.
    pub problem: Option<f64>,
    /// What the solution gave: the median of its rounds, in the metric's unit.
    pub solution: Option<f64>,
}

impl EffectFinding {
    pub(super) fn of(record: &Record) -> Self {
        let claim = &record.chapter.effect;
        let rounds: Vec<&Round> = record.rounds_for(Purpose::Effect).collect();
        let pairs = ratios_of_pairs(claim.metric, &rounds);
        let whole: Option<Vec<f64>> = pairs.iter().copied().collect();
        let of_variant = |variant: &str| median_of(claim.metric, &rounds, variant);
        Self {
            metric: claim.metric,
            claimed: claim.at_least,
            ratio: whole.as_deref().and_then(statistics::median_ratio),
            interval: whole
                .as_deref()
                .and_then(|ratios| statistics::median_interval(ratios, record.seed)),
            noise_floor: noise_floor(record, claim.metric),
            problem: of_variant(PROBLEM),
            solution: of_variant(SOLUTION),
            pairs,
        }
    }
}

/// Solution to problem in each pair; `None` where a side has no figure.
fn ratios_of_pairs(metric: Metric, rounds: &[&Round]) -> Vec<Option<f64>> {
    pairs(rounds)
        .into_iter()
        .map(|pair| {
            let (problem, solution) = pair?;
            metric.ratio(&problem.outcome, &solution.outcome)
        })
        .collect()
}

/// From every two rounds that followed each other on equal servers: the A/A
/// pairs, and the inner two of each ABBA, which are A/A pairs for free.
fn noise_floor(record: &Record, metric: Metric) -> Option<f64> {
    let neighbours = |purpose| {
        let rounds: Vec<&Round> = record.rounds_for(purpose).collect();
        let equals = rounds
            .windows(2)
            .filter(|pair| pair[0].variant == pair[1].variant);
        let ratios: Vec<_> = equals
            .map(|pair| metric.ratio(&pair[0].outcome, &pair[1].outcome))
            .collect();
        ratios
    };
    let equal = neighbours(Purpose::Equal);
    // Without an A/A pair there is no floor: the rounds judged must not be
    // the only witnesses of their own noise.
    if equal.is_empty() {
        return None;
    }
    let ratios: Option<Vec<f64>> = equal
        .into_iter()
        .chain(neighbours(Purpose::Effect))
        .collect();
    statistics::noise_floor(&ratios?)
}

/// The law against the measured gain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LawFinding {
    /// The predicted ratio.
    pub predicted: f64,
    /// The measured ratio.
    pub measured: f64,
    /// How far the measured one is from the predicted one, as a share of it.
    pub off: f64,
    /// How far it may be, where the chapter claims it.
    pub within: Option<f64>,
    /// Whether the law says what is gained at least: [`Law::is_lower_bound`].
    ///
    /// [`Law::is_lower_bound`]: measurement::law::Law::is_lower_bound
    pub lower_bound: bool,
}

impl LawFinding {
    pub(super) fn of(
        record: &Record,
        prediction: Option<&Prediction>,
        effect: &EffectFinding,
    ) -> Option<Self> {
        let (predicted, measured) = (prediction?.ratio, effect.ratio?);
        Some(Self {
            predicted,
            measured,
            off: measured / predicted - 1.0,
            within: record.chapter.law.within(),
            lower_bound: record.chapter.law.is_lower_bound(),
        })
    }

    /// Whether both lie as near as the chapter claims, or the law is a lower bound and exceeded; so
    /// they do where it claims nothing.
    pub fn holds(&self) -> bool {
        self.within.is_none_or(|within| self.off.abs() <= within) || self.is_exceeded()
    }

    /// Whether more was gained than a lower bound says, by more than the chapter claims.
    pub fn is_exceeded(&self) -> bool {
        self.lower_bound && self.within.is_some_and(|within| self.off > within)
    }
}

/// Problem and solution in another setting of the law.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PointFinding {
    /// The setting, a key of the chapter's `[settings]`.
    pub setting: String,
    /// What the law predicts there.
    pub prediction: Option<Prediction>,
    /// The claimed ratio, where one is claimed.
    pub claimed: Option<f64>,
    /// What the problem gave: the median of its rounds, in the effect's metric.
    pub problem: Option<f64>,
    /// What the solution gave: the median of its rounds, in the effect's metric.
    pub solution: Option<f64>,
    /// The median of the pairs' ratios.
    pub ratio: Option<f64>,
    /// The smallest of the pairs' ratios: with so few pairs, the one that a claim rests on.
    pub smallest: Option<f64>,
}

impl PointFinding {
    pub(super) fn all(record: &Record) -> Vec<Self> {
        let metric = record.chapter.effect.metric;
        let of = |point: &Point| {
            let rounds: Vec<&Round> = record
                .rounds_for(Purpose::Point)
                .filter(|round| round.setting == point.setting)
                .collect();
            let ratios: Option<Vec<f64>> = ratios_of_pairs(metric, &rounds).into_iter().collect();
            Self {
                setting: point.setting.clone(),
                prediction: in_setting(&record.chapter, &point.setting, Inputs::of(record)),
                claimed: point.at_least,
                problem: median_of(metric, &rounds, PROBLEM),
                solution: median_of(metric, &rounds, SOLUTION),
                ratio: ratios.as_deref().and_then(statistics::median_ratio),
                smallest: ratios.and_then(|ratios| ratios.into_iter().reduce(f64::min)),
            }
        };
        record.chapter.points.iter().map(of).collect()
    }

    /// Whether every pair reached the claim; so they do where nothing is claimed.
    pub fn holds(&self) -> bool {
        let claimed = self.claimed.unwrap_or(0.0);
        self.smallest.is_some_and(|ratio| ratio >= claimed)
    }
}

/// The median of a variant's rounds; `None` without one, or if one of them has no figure.
pub fn median_of(metric: Metric, rounds: &[&Round], variant: &str) -> Option<f64> {
    let values: Option<Vec<f64>> = rounds
        .iter()
        .filter(|round| round.variant == variant)
        .map(|round| metric.of(&round.outcome))
        .collect();
    statistics::median_ratio(&values?)
}

/// How near the solution came to the law.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BoundFinding {
    /// The setting, a key of the chapter's `[settings]`.
    pub setting: String,
    /// The law's bound, in requests a second.
    pub bound: f64,
    /// The solution measured (median over its rounds), in requests a second.
    pub measured: f64,
    /// `measured / bound`.
    pub share: f64,
    /// The claimed share.
    pub claimed: f64,
    /// What the problem gave in the same setting, in requests a second.
    pub problem: Option<f64>,
}

impl BoundFinding {
    pub(super) fn of(record: &Record) -> Option<Self> {
        let claim = record.chapter.bound.as_ref()?;
        let prediction = in_setting(&record.chapter, &claim.setting, Inputs::of(record));
        let bound = prediction?.solution?;
        let rounds: Vec<&Round> = record
            .rounds_for(Purpose::Bound)
            .filter(|round| round.setting == claim.setting)
            .collect();
        let median = |variant: &str| median_of(Metric::RequestsPerSecond, &rounds, variant);
        let measured = median(SOLUTION)?;
        Some(Self {
            setting: claim.setting.clone(),
            bound,
            measured,
            share: measured / bound,
            claimed: claim.at_least_share,
            problem: median(PROBLEM),
        })
    }
}
