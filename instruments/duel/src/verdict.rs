//! Two builds of a service: how far apart they are, and when enough is known to say so.
//!
//! A round has three servers: the base, the change, and the base again. Of each round the logarithm
//! of change to base, the mean of both bases, is one observation; the logarithm of base to base is
//! another, of equal servers, and independent of the first. Servers are fresh in each round, so
//! what differs from one start of the same program to the next is part of the noise.
//!
//! Rounds are looked at several times, and the comparison ends at the first look that decides it.
//! Each look takes Student's interval, of a trimmed mean where there are rounds enough, with one
//! chance in 300 of missing the truth. There are six looks at most, so that all of them together
//! miss it at most twice in a hundred comparisons (Bonferroni); the tests simulate how often they do.

use crate::figures;
use crate::metric::{Figures, Metric, Round, are_bounds};
use serde::Serialize;

use crate::statistics::student;

/// Each tail of a look's interval: both together are one chance in 300.
const TAIL: f64 = 1.0 / 600.0;

/// After how many rounds is looked.
pub const LOOKS: [usize; 6] = [3, 5, 8, 12, 18, 28];

/// An interval that reaches further than so many times its ratio says nothing, and is none.
pub const WIDEST: f64 = 100.0;

/// What is asked of a change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Goal {
    /// Which of the two is better. Differences below this share (0.05 is 5 %) are none.
    Difference {
        /// The share.
        margin: f64,
    },
    /// The change must be so many times as good.
    AtLeast(f64),
    /// The change may be worse by this share, and no more.
    AtMostSlower(f64),
}

/// The word that a comparison ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
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

impl std::fmt::Display for Word {
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
    /// The same of the change.
    pub change: f64,
    /// Change against base.
    pub ratio: f64,
    /// Where the true ratio lies, 98 times in a hundred, however often was looked. It is open above (infinite)
    /// where latencies of the base are only known to be longer than a slice, and reaches down to 0
    /// where those of the change are; `None` where both are, with fewer than three rounds, or when it
    /// would span more than [`WIDEST`] either way.
    pub interval: Option<(f64, f64)>,
    /// Whether `base` is a lower bound.
    pub is_base_bound: bool,
    /// Whether `change` is.
    pub is_change_bound: bool,
    /// How far from 1 the same estimate of two equal servers came out: 0.02 is 2 %.
    pub noise_floor: f64,
    /// The interval of that estimate.
    #[serde(skip)]
    pub equal_interval: Option<(f64, f64)>,
}

impl Estimate {
    /// Of `metric` in these rounds; `None` if one of them lacks it or has a zero.
    pub fn of(metric: &Metric, rounds: &[Round]) -> Option<Self> {
        let logs = |of: fn(&Round) -> &Figures| -> Option<Vec<f64>> {
            let figures = rounds.iter().map(|round| of(round).get(&metric.key));
            figures
                .map(|figure| Some(figure.filter(|f| f.is_finite() && *f > 0.0)?.ln()))
                .collect()
        };
        let base = logs(|round| &round.base)?;
        let again = logs(|round| &round.again)?;
        let change = logs(|round| &round.change)?;
        if base.is_empty() {
            return None;
        }
        let sign = if metric.larger_is_better == Some(false) {
            -1.0
        } else {
            1.0
        };
        let bases: Vec<f64> = base
            .iter()
            .zip(&again)
            .map(|(a, b)| (a + b) / 2.0)
            .collect();
        let gains = change.iter().zip(&bases).map(|(c, b)| sign * (c - b));
        let gains: Vec<f64> = gains.collect();
        let equals = again.iter().zip(&base).map(|(a, b)| sign * (a - b));
        let equals: Vec<f64> = equals.collect();
        let exp = |(low, high): (f64, f64)| (low.exp(), high.exp());
        let (is_base_bound, is_change_bound) = are_bounds(rounds, &metric.key);
        Some(Self {
            base: centre(&bases).exp(),
            change: centre(&change).exp(),
            ratio: centre(&gains).exp(),
            interval: match (interval(&gains).map(exp), is_base_bound, is_change_bound) {
                (Some((low, _)), true, false) => Some((low, f64::INFINITY)),
                (Some((_, high)), false, true) => Some((0.0, high)),
                (_, true, true) => None,
                (exact, ..) => exact,
            },
            is_base_bound,
            is_change_bound,
            noise_floor: centre(&equals).abs().exp() - 1.0,
            equal_interval: interval(&equals).map(exp),
        })
    }

    /// Whether it is further from 1 than equal servers came out.
    fn is_beyond_noise(&self) -> bool {
        self.ratio.max(self.ratio.recip()) - 1.0 > self.noise_floor
    }
}

/// What a look says.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The word.
    pub word: Word,
    /// Whether the goal is reached.
    pub is_good: bool,
    /// One sentence.
    pub reason: String,
}

/// Judges `metric` by the rounds so far. `Inconclusive` means: another round may decide.
pub fn judge(metric: &Metric, goal: Goal, rounds: &[Round]) -> Verdict {
    let verdict = |word, is_good, reason: String| Verdict {
        word,
        is_good,
        reason,
    };
    if rounds.len() < LOOKS[0] {
        let reason = "too few rounds: give it more time, with --at-most.".to_owned();
        return verdict(Word::Inconclusive, false, reason);
    }
    let Some(estimate) = Estimate::of(metric, rounds) else {
        let reason = format!(
            "{} was not measured in every round, so no ratio can be formed; load longer, or let \
             another metric decide.",
            metric.label
        );
        return verdict(Word::Invalid, false, reason);
    };
    if estimate.is_base_bound && estimate.is_change_bound {
        let reason = format!(
            "{} of both is longer than a slice: take longer slices, with --seconds.",
            metric.label
        );
        return verdict(Word::Invalid, false, reason);
    }
    let Some((low, high)) = estimate.interval else {
        let reason = format!(
            "too little is known: from one round to the next {} differs too much for an interval.",
            metric.label
        );
        return verdict(Word::Inconclusive, false, reason);
    };
    let margin = match goal {
        Goal::Difference { margin } => margin,
        Goal::AtLeast(_) => DEFAULT_MARGIN,
        Goal::AtMostSlower(share) => share,
    };
    if let Some((equal_low, equal_high)) = estimate.equal_interval
        && (equal_low > 1.0 + margin || equal_high < (1.0 + margin).recip())
    {
        let reason = format!(
            "too noisy: the base differs from itself by {}; close other programs and repeat.",
            figures::percent(estimate.noise_floor)
        );
        return verdict(Word::Invalid, false, reason);
    }
    let is_within = low >= worse_by(margin) && high <= 1.0 + margin;
    let word = if is_within {
        Word::NoDifference
    } else if low > 1.0 && estimate.is_beyond_noise() {
        Word::Faster
    } else if high < 1.0 && estimate.is_beyond_noise() {
        Word::Slower
    } else {
        Word::Inconclusive
    };
    let seen = in_words(metric, &estimate);
    match goal {
        Goal::Difference { .. } => {
            let is_good = matches!(word, Word::Faster | Word::NoDifference);
            let reason = match word {
                Word::NoDifference => {
                    format!("no difference above {}: {seen}.", figures::percent(margin))
                }
                Word::Inconclusive => format!("too little is known: {seen}."),
                _ => format!("{seen}."),
            };
            verdict(word, is_good, reason)
        }
        Goal::AtLeast(times) if low >= times && estimate.is_beyond_noise() => {
            verdict(Word::Faster, true, format!("{seen}."))
        }
        Goal::AtLeast(times) if high < times => verdict(
            word,
            false,
            format!("not {} times as good: {seen}.", figures::ratio(times)),
        ),
        Goal::AtMostSlower(share) if low >= worse_by(share) => {
            let word = if low > 1.0 && estimate.is_beyond_noise() {
                Word::Faster
            } else {
                Word::NoDifference
            };
            let reason = format!("not worse by {}: {seen}.", figures::percent(share));
            verdict(word, true, reason)
        }
        Goal::AtMostSlower(share) if high < worse_by(share) => verdict(
            Word::Slower,
            false,
            format!("worse by more than {}: {seen}.", figures::percent(share)),
        ),
        Goal::AtLeast(_) | Goal::AtMostSlower(_) => verdict(
            Word::Inconclusive,
            false,
            format!("too little is known: {seen}."),
        ),
    }
}

/// Differences below this share are none, unless somebody says otherwise.
pub const DEFAULT_MARGIN: f64 = 0.05;

/// The ratio of a change that is worse by `share`: as far below 1 as `1 + share` is above.
fn worse_by(share: f64) -> f64 {
    (1.0 + share).recip()
}

/// What is worse about a change beyond doubt, and by more than the default margin, apart from the metric
/// that decides.
pub fn drawbacks(deciding: &Metric, metrics: &[Metric], rounds: &[Round]) -> Vec<String> {
    let others = metrics.iter().filter(|metric| metric.key != deciding.key);
    let others = others.filter(|metric| metric.larger_is_better.is_some());
    let is_worse = |estimate: &Estimate| {
        let is_below = |(_, high): (f64, f64)| high < worse_by(DEFAULT_MARGIN);
        estimate.interval.is_some_and(is_below) && estimate.is_beyond_noise()
    };
    others
        .filter_map(|metric| Some((metric, Estimate::of(metric, rounds).filter(is_worse)?)))
        .map(|(metric, estimate)| format!("{} {}", metric.label, estimate.times()))
        .collect()
}

impl Estimate {
    /// The ratio and its interval for people: `1.30 (1.21 to 1.40)`, and where the latencies of a side are
    /// only known to be longer than a slice `at most 0.36`.
    pub fn text(&self) -> String {
        let (ratio, interval) = self.parts();
        ratio + &interval
    }

    fn parts(&self) -> (String, String) {
        let ratio = figures::ratio;
        let alone = |text: String| (text, String::new());
        match (self.is_base_bound, self.is_change_bound, self.interval) {
            (true, true, _) => alone("unknown".to_owned()),
            (true, false, Some((low, _))) => alone(format!("at least {}", ratio(low))),
            (false, true, Some((_, high))) => alone(format!("at most {}", ratio(high))),
            (_, _, Some((low, high))) => {
                let interval = format!(" ({} to {})", ratio(low), ratio(high));
                (ratio(self.ratio), interval)
            }
            (.., None) => alone(ratio(self.ratio)),
        }
    }

    /// As [`Estimate::text`], in a sentence.
    fn times(&self) -> String {
        let (ratio, interval) = self.parts();
        format!("of the change {ratio} times as good{interval}")
    }
}

fn in_words(metric: &Metric, estimate: &Estimate) -> String {
    format!(
        "{} {}, the base against itself {} apart",
        metric.label,
        estimate.times(),
        figures::percent(estimate.noise_floor)
    )
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// From so many rounds on, the outer fifths are trimmed: a round in which the machine did something
/// else for a while would widen the interval for all.
const TRIMMED_FROM: usize = 8;

/// How many values are trimmed at each end. It hangs on their number alone.
fn trimmed(count: usize) -> usize {
    if count < TRIMMED_FROM { 0 } else { count / 5 }
}

/// The mean without the outer values, in the middle of [`interval`].
fn centre(values: &[f64]) -> f64 {
    let cut = trimmed(values.len());
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    mean(&sorted[cut..sorted.len() - cut])
}

/// Student's interval of that mean for one look, by the spread of the values with the outer ones
/// drawn in: K. K. Yuen, "The Two-Sample Trimmed t for Unequal Population Variances", Biometrika
/// 61(1), 1974, for one sample.
fn interval(values: &[f64]) -> Option<(f64, f64)> {
    let cut = trimmed(values.len());
    let kept = values.len() - 2 * cut;
    let freedom = kept.checked_sub(1).filter(|freedom| *freedom > 0)?;
    let mut drawn_in = values.to_vec();
    drawn_in.sort_unstable_by(f64::total_cmp);
    let (low, high) = (drawn_in[cut], drawn_in[values.len() - 1 - cut]);
    for value in &mut drawn_in {
        *value = value.clamp(low, high);
    }
    let middle = mean(&drawn_in);
    let squares: f64 = drawn_in.iter().map(|value| (value - middle).powi(2)).sum();
    let error = (squares / (kept as f64 * freedom as f64)).sqrt();
    let half = student(freedom as f64, TAIL)? * error;
    if values.len() < LOOKS[0] || half > WIDEST.ln() {
        return None;
    }
    let centre = centre(values);
    Some((centre - half, centre + half))
}
