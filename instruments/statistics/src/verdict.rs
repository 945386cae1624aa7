//! Two builds of a service: how far apart they are, and when enough is known to say so.
//!
//! A round has three servers: the base, the change, and the base again. Servers are fresh in each round, so differences
//! between two starts of the same program are part of the noise.
//!
//! Rounds are judged at several looks, and the comparison ends at the first look that decides it:
//! [`Looks::COMPARISON`]. The tests simulate how often that is wrong.

use crate::figures;
use crate::metric::{Metric, Triplet, are_bounds};
use serde::Serialize;

use crate::{FIRST_LOOK, Gains, Looks};

/// Largest ratio between an end of an interval and its middle. A wider interval says nothing, and is none.
const WIDEST: f64 = 100.0;

/// Goal of a change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Goal {
    /// Find the better of the two. Differences below this share (0.05 is 5 %) are none.
    Difference {
        /// The share.
        margin: f64,
    },
    /// The change must be at least this many times as good.
    AtLeast(f64),
    /// The change may be worse by this share, and no more.
    AtMostSlower(f64),
}

impl Goal {
    /// Returns the share below which a difference counts as none.
    fn margin(self) -> f64 {
        match self {
            Self::Difference { margin } => margin,
            Self::AtLeast(_) => DEFAULT_MARGIN,
            Self::AtMostSlower(share) => share,
        }
    }
}

impl Default for Goal {
    /// Finds the better of the two if they differ by 5 %.
    fn default() -> Self {
        Self::Difference {
            margin: DEFAULT_MARGIN,
        }
    }
}

/// Speed of the change against the base: the kinds of a comparison's verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Speed {
    /// The change is better.
    Faster,
    /// The change is worse.
    Slower,
    /// They differ by less than the margin.
    NoDifference,
    /// Too little is known to say.
    Inconclusive,
    /// The run says nothing about the change.
    Invalid,
}

impl std::fmt::Display for Speed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::NoDifference => "no difference",
            Self::Inconclusive => "inconclusive",
            Self::Invalid => "invalid",
        })
    }
}

/// One metric of both builds. Ratios are larger when the change is better.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// Geometric mean over the rounds, without the outer ones where there are many.
    pub base: f64,
    /// Geometric mean of the change's figures.
    pub change: f64,
    /// Change against base.
    pub ratio: f64,
    /// Interval that holds the true ratio in 98 of a hundred comparisons, whenever they end. Its upper end is infinite
    /// if latencies of the base are only known to be longer than a slice, and its lower end is 0 if those of the change
    /// are. `None` if both are, with fewer than three rounds, or if it would span more than a factor of 100 either way.
    pub interval: Option<(f64, f64)>,
    /// `true` if `base` is a lower bound.
    pub is_base_bound: bool,
    /// `true` if `change` is a lower bound.
    pub is_change_bound: bool,
    /// Noise floor: 0.02 is 2 %.
    pub noise_floor: Option<f64>,
    /// Interval of the ratio of the equal servers.
    #[serde(skip)]
    pub equal_interval: Option<(f64, f64)>,
}

impl Estimate {
    /// Estimates `metric` from the rounds that have it; `None` if none has, or one has a zero.
    pub fn of(metric: &Metric, rounds: &[Triplet]) -> Option<Self> {
        let larger_is_better = metric.larger_is_better != Some(false);
        let (mut gains, mut bases, mut changes) =
            (Gains::default(), Gains::default(), Gains::default());
        for round in rounds {
            let Some((base, change)) = of_round(metric, round) else {
                continue;
            };
            gains.add(&base, &change, larger_is_better)?;
            bases.add(&[1.0], &base, true)?;
            changes.add(&[1.0], &change, true)?;
        }
        let looks = Looks::COMPARISON;
        let (is_base_bound, is_change_bound) = are_bounds(rounds, &metric.key);
        let interval = gains.pooled_interval(looks).filter(is_narrow);
        Some(Self {
            base: bases.ratio()?,
            change: changes.ratio()?,
            ratio: gains.ratio()?,
            interval: match (interval, is_base_bound, is_change_bound) {
                (Some((low, _)), true, false) => Some((low, f64::INFINITY)),
                (Some((_, high)), false, true) => Some((0.0, high)),
                (_, true, true) => None,
                (exact, ..) => exact,
            },
            is_base_bound,
            is_change_bound,
            noise_floor: gains.noise_floor(),
            equal_interval: gains.equal_interval(looks).filter(is_narrow),
        })
    }
}

/// Returns the figures of a round: those of the two servers of the base, and that of the change. `None` if one of the
/// three was not measured.
fn of_round(metric: &Metric, round: &Triplet) -> Option<([f64; 2], [f64; 1])> {
    let key = &metric.key;
    let base = [round.base.get(key)?, round.again.get(key)?];
    Some((base, [round.change.get(key)?]))
}

fn is_narrow((low, high): &(f64, f64)) -> bool {
    high / low <= WIDEST * WIDEST
}

/// Verdict on what was measured: on a comparison with [`Speed`] as its kind, on a proof with another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict<Kind> {
    /// Kind of the verdict, for scripts.
    pub kind: Kind,
    /// `true` if the goal of a comparison is reached, or the claims of a proof are proved.
    pub is_good: bool,
    /// One sentence.
    pub reason: String,
}

/// Judges `metric` by the rounds so far. `Inconclusive` means: another round may decide.
pub fn judge(metric: &Metric, goal: Goal, rounds: &[Triplet]) -> Verdict<Speed> {
    if rounds.len() < FIRST_LOOK as usize {
        let reason = "too few rounds: give it more time, with --at-most.".to_owned();
        return verdict(Speed::Inconclusive, false, reason);
    }
    let measured = rounds
        .iter()
        .filter(|round| of_round(metric, round).is_some());
    let measured = measured.count();
    let lacking = format!(
        "{} was measured in {measured} of {} rounds; load longer, with --seconds, or let another metric decide.",
        metric.label,
        rounds.len()
    );
    let Some(estimate) = Estimate::of(metric, rounds) else {
        return verdict(Speed::Invalid, false, lacking);
    };
    if measured < FIRST_LOOK as usize {
        return verdict(Speed::Inconclusive, false, lacking);
    }
    if estimate.is_base_bound && estimate.is_change_bound {
        let reason = format!(
            "{} of both is longer than a slice: take longer slices, with --seconds.",
            metric.label
        );
        return verdict(Speed::Invalid, false, reason);
    }
    let Some((low, high)) = estimate.interval else {
        let reason = format!(
            "too little is known: from one round to the next {} differs too much for an interval; close other programs, or \
             give it more time, with --at-most.",
            metric.label
        );
        return verdict(Speed::Inconclusive, false, reason);
    };
    let margin = goal.margin();
    if let Some((equal_low, equal_high)) = estimate.equal_interval
        && (equal_low > 1.0 + margin || equal_high < (1.0 + margin).recip())
    {
        let reason = format!(
            "too noisy: the base is {} to {} times as good as itself; close other programs and repeat.",
            figures::ratio(equal_low),
            figures::ratio(equal_high)
        );
        return verdict(Speed::Invalid, false, reason);
    }
    let estimated = in_words(metric, &estimate);
    let seen = if measured < rounds.len() {
        format!(
            "{estimated} (measured in {measured} of {} rounds)",
            rounds.len()
        )
    } else {
        estimated
    };
    judge_interval(&seen, (low, high), goal)
}

/// Judges the interval of a ratio, larger being better. `seen` describes it.
pub fn judge_interval(seen: &str, (low, high): (f64, f64), goal: Goal) -> Verdict<Speed> {
    let margin = goal.margin();
    let word = speed((low, high), margin);
    match goal {
        Goal::Difference { .. } => {
            let is_good = matches!(word, Speed::Faster | Speed::NoDifference);
            let reason = match word {
                Speed::NoDifference => {
                    format!("no difference above {}: {seen}.", figures::percent(margin))
                }
                Speed::Inconclusive => undecided(seen),
                _ => format!("{seen}."),
            };
            verdict(word, is_good, reason)
        }
        Goal::AtLeast(times) if low >= times => verdict(Speed::Faster, true, format!("{seen}.")),
        Goal::AtLeast(times) if high < times => verdict(
            word,
            false,
            format!("not {} times as good: {seen}.", figures::ratio(times)),
        ),
        Goal::AtMostSlower(share) if low >= worse_by(share) => {
            let word = if low > 1.0 {
                Speed::Faster
            } else {
                Speed::NoDifference
            };
            let reason = format!("not worse by {}: {seen}.", figures::percent(share));
            verdict(word, true, reason)
        }
        Goal::AtMostSlower(share) if high < worse_by(share) => verdict(
            Speed::Slower,
            false,
            format!("worse by more than {}: {seen}.", figures::percent(share)),
        ),
        Goal::AtLeast(_) | Goal::AtMostSlower(_) => {
            verdict(Speed::Inconclusive, false, undecided(seen))
        }
    }
}

fn verdict(kind: Speed, is_good: bool, reason: String) -> Verdict<Speed> {
    Verdict {
        kind,
        is_good,
        reason,
    }
}

/// Formats the reason for an undecided difference, with advice.
fn undecided(seen: &str) -> String {
    format!(
        "too little is known: {seen}; close other programs, or give it more time, with --at-most."
    )
}

/// Default margin: differences below this share are none, unless somebody says otherwise.
pub(crate) const DEFAULT_MARGIN: f64 = 0.05;

/// Returns the ratio of a change that is worse by `share`: as far below 1 as `1 + share` is above.
fn worse_by(share: f64) -> f64 {
    (1.0 + share).recip()
}

/// Lists the metrics, apart from the one that decides, in which the change is worse beyond doubt and by more than the
/// default margin.
pub fn drawbacks(deciding: &Metric, metrics: &[Metric], rounds: &[Triplet]) -> Vec<String> {
    let mut drawbacks = Vec::new();
    for metric in metrics {
        if metric.key == deciding.key || metric.larger_is_better.is_none() {
            continue;
        }
        if let Some(estimate) = Estimate::of(metric, rounds)
            && let Some((_, high)) = estimate.interval
            && high < worse_by(DEFAULT_MARGIN)
        {
            drawbacks.push(format!("{} {}", metric.label, estimate.times()));
        }
    }
    drawbacks
}

impl Estimate {
    /// Formats the ratio and its interval for people: `1.30 (1.21 to 1.40)`. If the latencies of a side are only known
    /// to be longer than a slice, it is `at most 0.36` or `at least 2.8`.
    pub fn text(&self) -> String {
        let (ratio, interval) = self.parts();
        ratio + &interval
    }

    fn parts(&self) -> (String, String) {
        let mut interval = String::new();
        let ratio = match (self.is_base_bound, self.is_change_bound, self.interval) {
            (true, true, _) => "unknown".to_owned(),
            (true, false, Some((low, _))) => format!("at least {}", figures::ratio(low)),
            (false, true, Some((_, high))) => format!("at most {}", figures::ratio(high)),
            (_, _, Some((low, high))) => {
                let (low, high) = (figures::ratio(low), figures::ratio(high));
                interval = format!(" ({low} to {high})");
                figures::ratio(self.ratio)
            }
            (.., None) => figures::ratio(self.ratio),
        };
        (ratio, interval)
    }

    /// Formats [`Estimate::text`] for a sentence.
    fn times(&self) -> String {
        let (ratio, interval) = self.parts();
        format!("of the change {ratio} times as good{interval}")
    }
}

/// Says what an interval of the ratio means. No difference up to `margin` counts.
fn speed((low, high): (f64, f64), margin: f64) -> Speed {
    if low >= worse_by(margin) && high <= 1.0 + margin {
        Speed::NoDifference
    } else if low > 1.0 {
        Speed::Faster
    } else if high < 1.0 {
        Speed::Slower
    } else {
        Speed::Inconclusive
    }
}

fn in_words(metric: &Metric, estimate: &Estimate) -> String {
    let equal = match estimate.noise_floor {
        Some(floor) => format!(
            ", the base against itself up to {} apart",
            figures::percent(floor)
        ),
        None => String::new(),
    };
    format!("{} {}{equal}", metric.label, estimate.times())
}
