//! How far apart servers are, of rounds that loaded them in turn: the ratio, its interval, and when enough is
//! known. Proofs of the chapters and comparisons of two builds are both judged by it.
//!
//! Ratios are compared by their logarithms, so that twice as fast and half as fast are equally far
//! from 1. The interval is Student's (W. S. Gosset, "The probable error of a mean", Biometrika
//! 6(1), 1908). What it misses is simulated by the tests and told in METHODOLOGY.md.

use special::Beta as _;

/// The servers of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// What is compared with: of a proof, the problem.
    Base,
    /// What is compared: of a proof, the fix.
    Change,
    /// One of the two again, which shows what noise alone does: of a proof the fix, else the base.
    Again,
}

/// The order in which the round of this number loads its servers. Within six rounds each comes first, second and
/// last equally often, and each before each other, so a machine that slowly warms up or slows down
/// favours none.
pub fn triplet(number: u32) -> [Side; 3] {
    use Side::{Again as A, Base as B, Change as C};
    const ORDERS: [[Side; 3]; 6] = [
        [B, C, A],
        [A, C, B],
        [C, B, A],
        [A, B, C],
        [B, A, C],
        [C, A, B],
    ];
    ORDERS[number as usize % ORDERS.len()]
}

/// The order of so many rounds.
pub fn triplets(count: u32) -> impl Iterator<Item = [Side; 3]> {
    (0..count).map(triplet)
}

/// Each of two sides as often first as second: the first, the second, the second, the first ….
pub fn abba<T: Copy>(a: T, b: T, pairs: u32) -> impl Iterator<Item = T> {
    (0..pairs).flat_map(move |pair| if pair % 2 == 0 { [a, b] } else { [b, a] })
}

/// The geometric mean of ratios, so that the mean of the reciprocals is the reciprocal of the mean.
///
/// `None` without ratios, or with one that is not a finite number above 0.
pub fn mean_ratio(ratios: &[f64]) -> Option<f64> {
    let logs: Option<Vec<f64>> = ratios.iter().map(|ratio| log(*ratio)).collect();
    Some(ratios.first()? * away(&logs?)?.exp())
}

/// The median of ratios: the middle one, or the geometric mean of the middle two.
///
/// `None` as [`mean_ratio`].
pub fn median_ratio(ratios: &[f64]) -> Option<f64> {
    let mut sorted = ratios.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let half = sorted.len() / 2;
    let middle = if sorted.len() % 2 == 1 {
        &sorted[half..=half]
    } else {
        sorted.get(half.checked_sub(1)?..=half)?
    };
    ratios
        .iter()
        .all(|ratio| log(*ratio).is_some())
        .then(|| mean_ratio(middle))
        .flatten()
}

/// After how many rounds is looked whether they decide.
const AFTER: [u32; 6] = [3, 5, 8, 12, 18, 28];

/// Fewer rounds than this have no interval.
pub const FIRST_LOOK: u32 = AFTER[0];

/// When it is looked, and how wide an interval is that all looks together may rest on: each look takes an
/// equal share of what they may miss. That these add up is Bonferroni's bound, which needs no assumption
/// on how the looks depend on each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Looks {
    most: u32,
    tail: f64,
}

/// Each tail of an interval of 95 %.
pub const TAIL: f64 = 0.025;

impl Looks {
    /// One look, at the end of a number of rounds that was fixed before: an interval of 95 %.
    pub const ONCE: Self = Self {
        most: 0,
        tail: TAIL,
    };

    /// Of a comparison of two builds: their intervals miss the truth in at most two of a hundred.
    pub const COMPARISON: Self = Self {
        most: AFTER[AFTER.len() - 1],
        tail: 0.02 / 2.0 / AFTER.len() as f64,
    };

    /// Of a proof of at most so many rounds: in at most five of a hundred.
    pub fn of_proof(most: u32) -> Self {
        let before = AFTER.iter().filter(|rounds| **rounds < most).count();
        Self {
            most,
            tail: TAIL / (before + 1) as f64,
        }
    }

    /// Whether it is looked after so many rounds.
    pub fn is_one(self, rounds: u32) -> bool {
        rounds >= self.most || AFTER.contains(&rounds)
    }

    /// Whether it is the last.
    pub fn is_last(self, rounds: u32) -> bool {
        rounds >= self.most
    }
}

/// From so many rounds on, the outer fifths are trimmed: a round in which the machine did something
/// else for a while would widen the interval for all.
const TRIMMED_FROM: usize = 8;

/// What rounds tell of one metric: of each the logarithm of how many times as good the change is, by all of
/// its servers, and where two of them are equal that of the one to the other.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Gains {
    gains: Vec<f64>,
    equals: Vec<f64>,
}

impl Gains {
    /// Adds a round: the figures of one or two servers of each side. `None`, and nothing is added, if one is
    /// not a finite number above 0.
    pub fn add(&mut self, base: &[f64], change: &[f64], larger_is_better: bool) -> Option<()> {
        let logs = |figures: &[f64]| -> Option<Vec<f64>> {
            figures.iter().map(|figure| log(*figure)).collect()
        };
        let (base, change) = (logs(base)?, logs(change)?);
        let gain = mean(&change)? - mean(&base)?;
        self.gains.push(if larger_is_better { gain } else { -gain });
        for side in [base, change] {
            self.equals
                .extend(side.windows(2).map(|two| two[1] - two[0]));
        }
        Some(())
    }

    /// How many rounds there are.
    pub fn rounds(&self) -> usize {
        self.gains.len()
    }

    /// How many times as good the change is, in the geometric mean: the mean of the reciprocals is the
    /// reciprocal of the mean. The outer rounds are left out where there are many. `None` without a round.
    pub fn ratio(&self) -> Option<f64> {
        Some(centre(&self.gains)?.exp())
    }

    /// Where the true ratio lies: Student's interval, by the spread of the rounds with the outer ones drawn
    /// in (K. K. Yuen, "The Two-Sample Trimmed t for Unequal Population Variances", Biometrika 61(1),
    /// 1974, for one sample). Equal servers that differ are noise which the spread of few rounds may
    /// lack: half of their difference is in each gain, so the interval is at least half as wide as theirs.
    ///
    /// `None` with fewer rounds than [`FIRST_LOOK`].
    pub fn interval(&self, looks: Looks) -> Option<(f64, f64)> {
        let centre = centre(&self.gains)?;
        let own = half(&self.gains, centre, looks)?;
        let half = own.max(half(&self.equals, 0.0, looks).unwrap_or(0.0) / 2.0);
        Some(((centre - half).exp(), (centre + half).exp()))
    }

    /// As [`Gains::interval`], and where there are too few rounds for that from the least to the greatest gain.
    pub fn interval_or_span(&self, looks: Looks) -> Option<(f64, f64)> {
        self.interval(looks).or_else(|| match *sorted(&self.gains) {
            [low, .., high] => Some((low.exp(), high.exp())),
            _ => None,
        })
    }

    /// How far from 1 the ratio of equal servers may be, by the same estimate and in 95 of a hundred cases:
    /// 0.05 says that one of two equal servers may look up to 5 % better than the other. `None` as
    /// [`Gains::interval`], and without equal servers.
    pub fn noise_floor(&self) -> Option<f64> {
        Some(half(&self.equals, 0.0, Looks::ONCE)?.exp() - 1.0)
    }

    /// Where the ratio of the second of two equal servers to the first lies, which is 1 on a machine that
    /// favours none. `None` as [`Gains::noise_floor`].
    pub fn equal_interval(&self, looks: Looks) -> Option<(f64, f64)> {
        let centre = centre(&self.equals)?;
        let half = half(&self.equals, centre, looks)?;
        Some(((centre - half).exp(), (centre + half).exp()))
    }
}

/// How many values are trimmed at each end. It hangs on their number alone.
fn trimmed(count: usize) -> usize {
    if count < TRIMMED_FROM { 0 } else { count / 5 }
}

fn mean(values: &[f64]) -> Option<f64> {
    Some(values.first()? + away(values)?)
}

/// How far the mean lies from the first value: relative to it, so that equal values give themselves.
fn away(values: &[f64]) -> Option<f64> {
    let first = *values.first()?;
    let sum: f64 = values.iter().map(|value| value - first).sum();
    Some(sum / values.len() as f64)
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// The geometric mean, as a logarithm, without the outer values where there are many.
fn centre(logs: &[f64]) -> Option<f64> {
    let cut = trimmed(logs.len());
    mean(&sorted(logs)[cut..logs.len() - cut])
}

/// How far an interval of the [`centre`] reaches to each side, by how far the values lie from `middle`.
fn half(logs: &[f64], middle: f64, looks: Looks) -> Option<f64> {
    if logs.len() < FIRST_LOOK as usize {
        return None;
    }
    let cut = trimmed(logs.len());
    let sorted = sorted(logs);
    let (low, high) = (sorted[cut], sorted[logs.len() - 1 - cut]);
    let drawn_in = sorted.iter().map(|log| log.clamp(low, high) - middle);
    let squares: f64 = drawn_in.map(|away| away * away).sum();
    let kept = (logs.len() - 2 * cut) as f64;
    let error = (squares / (kept * (kept - 1.0))).sqrt();
    Some(student(kept - 1.0, looks.tail)? * error)
}

/// Student's quantile that `tail`, at most a half, lies above. `None` without a degree of freedom.
pub fn student(freedom: f64, tail: f64) -> Option<f64> {
    if freedom <= 0.0 {
        return None;
    }
    let (a, b) = (freedom / 2.0, 0.5);
    let within = (2.0 * tail).inv_inc_beta(a, b, a.ln_beta(b));
    Some((freedom * (1.0 / within - 1.0)).sqrt())
}

fn log(ratio: f64) -> Option<f64> {
    let is_ratio = ratio.is_finite() && ratio > 0.0 && ratio.recip().is_finite();
    is_ratio.then(|| ratio.ln())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As printed tables have them.
    #[test]
    fn students_quantiles_are_those_of_the_tables() {
        for (freedom, tail, right) in [
            (1.0, 0.025, 12.706),
            (2.0, 0.05, 2.920),
            (9.0, 0.025, 2.262),
            (9.0, 0.0005, 4.781),
            (120.0, 0.005, 2.617),
        ] {
            let quantile = student(freedom, tail).unwrap();
            assert!(
                (quantile - right).abs() < 5e-4,
                "{freedom} {tail}: {quantile}"
            );
        }
        assert_eq!(student(0.0, 0.025), None);
    }
}
