//! Statistics of servers that were loaded in turn: the ratio, its interval, and the rounds after which both are judged.
//! Proofs of the chapters and comparisons of two builds use the same.
//!
//! Ratios are compared by their logarithms, so that twice as fast and half as fast are equally far
//! from 1. The interval is Student's (W. S. Gosset, "The probable error of a mean", Biometrika
//! 6(1), 1908). The tests simulate how often it misses the truth, and METHODOLOGY.md has the tables.

pub mod capacity;
pub mod condition;
pub mod counters;
pub mod metric;
pub mod profile;
pub mod rounds;
pub mod verdict;

pub use ecosystem::figures;
use special::Beta as _;

/// The servers of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The older build; in a proof, the problem.
    Base,
    /// The newer build; in a proof, the fix.
    Change,
    /// One of the two again, which shows the noise: in a proof the fix, else the base.
    Again,
}

/// Returns the order in which a round loads its servers. Within six rounds each server comes first, second and last
/// equally often, and each before each other. So a machine that slowly warms up or slows down favors none.
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

/// Returns the order of each of `count` rounds.
pub fn triplets(count: u32) -> impl Iterator<Item = [Side; 3]> {
    (0..count).map(triplet)
}

/// Alternates two sides, each as often first as second: the first, the second, the second, the first ….
pub fn abba<T: Copy>(a: T, b: T, pairs: u32) -> impl Iterator<Item = T> {
    // The pattern of four is that of two pairs.
    (0..2 * pairs).map(move |place| {
        if place % 4 == 0 || place % 4 == 3 {
            a
        } else {
            b
        }
    })
}

/// Returns the geometric mean of ratios: the mean of the reciprocals is the reciprocal of the mean.
fn mean_ratio(ratios: &[f64]) -> Option<f64> {
    Some(ratios.first()? * away(&logs(ratios)?)?.exp())
}

/// Returns the median of ratios: the middle one, or the geometric mean of the middle two.
///
/// `None` without ratios, or with one that is not a finite number above 0.
pub fn median_ratio(ratios: &[f64]) -> Option<f64> {
    let mut sorted = ratios.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let half = sorted.len() / 2;
    let middle = if sorted.len() % 2 == 1 {
        &sorted[half..=half]
    } else {
        sorted.get(half.checked_sub(1)?..=half)?
    };
    if ratios.iter().any(|ratio| log(*ratio).is_none()) {
        return None;
    }
    mean_ratio(middle)
}

/// Numbers of rounds after which a run may stop.
const AFTER: [u32; 6] = [3, 5, 8, 12, 18, 28];

/// Smallest number of rounds that have an interval.
pub const FIRST_LOOK: u32 = AFTER[0];

/// Looks at the rounds so far, and the width of an interval that all looks together may rest on.
///
/// Each look takes an equal share of the runs in which the interval may miss the truth (Bonferroni's bound, which
/// assumes nothing about how the looks depend on each other).
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

    /// Looks of a comparison of two builds: all intervals together miss the truth in at most 2 % of comparisons.
    pub const COMPARISON: Self = Self {
        most: AFTER[AFTER.len() - 1],
        tail: 0.02 / 2.0 / AFTER.len() as f64,
    };

    /// Looks of a proof of at most `most` rounds: all intervals together miss the truth in at most 5 % of proofs.
    pub fn of_proof(most: u32) -> Self {
        let before = AFTER.iter().filter(|rounds| **rounds < most).count();
        Self {
            most,
            tail: TAIL / (before + 1) as f64,
        }
    }

    /// Returns whether a run may stop after `rounds` rounds.
    pub(crate) fn is_one(self, rounds: u32) -> bool {
        rounds >= self.most || AFTER.contains(&rounds)
    }

    /// Returns whether a run stops after `rounds` rounds at the latest.
    pub(crate) fn is_last(self, rounds: u32) -> bool {
        rounds >= self.most
    }
}

/// Smallest number of rounds whose outer fifths are trimmed: a round in which the machine did something else for a
/// while would widen the interval for all.
const TRIMMED_FROM: usize = 8;

/// The mean of the logarithms of some figures, with its standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mean {
    log: f64,
    error: f64,
    freedom: f64,
}

impl Mean {
    /// Averages figures; `None` with fewer than [`FIRST_LOOK`], or with one that is not a finite number above 0.
    pub fn of(figures: &[f64]) -> Option<Self> {
        Self::of_logs(&logs(figures)?)
    }

    /// Averages logarithms without the outer ones where there are many. The error is that of K. K. Yuen ("The
    /// Two-Sample Trimmed t for Unequal Population Variances", Biometrika 61(1), 1974) for one sample: the outer values
    /// are drawn in, and count in the spread.
    fn of_logs(logs: &[f64]) -> Option<Self> {
        if logs.len() < FIRST_LOOK as usize {
            return None;
        }
        let log = centre(logs)?;
        let Spread { squares, kept } = Spread::around(log, logs);
        Some(Self {
            log,
            error: (squares / (kept * (kept - 1.0))).sqrt(),
            freedom: kept - 1.0,
        })
    }

    /// Makes a mean of a figure that is known exactly.
    pub fn exactly(figure: f64) -> Option<Self> {
        Some(Self {
            log: log(figure)?,
            error: 0.0,
            freedom: f64::INFINITY,
        })
    }

    /// Returns the geometric mean of the figures.
    pub fn figure(self) -> f64 {
        self.log.exp()
    }

    /// Divides by another mean, which was measured in rounds of its own (B. L. Welch, "The generalization of
    /// 'Student's' problem when several different population variances are involved", Biometrika 34(1-2), 1947).
    #[must_use]
    pub fn over(self, other: Self) -> Self {
        let (own, others) = (self.error.powi(2), other.error.powi(2));
        let parts = own.powi(2) / self.freedom + others.powi(2) / other.freedom;
        let freedom = if parts > 0.0 {
            (own + others).powi(2) / parts
        } else {
            f64::INFINITY
        };
        Self {
            log: self.log - other.log,
            error: (own + others).sqrt(),
            freedom,
        }
    }

    /// Replaces the mean by the figure that a law derives from it: `figure`, which changes by `slope` percent if the
    /// mean changes by one.
    pub fn becomes(self, figure: f64, slope: f64) -> Option<Self> {
        Some(Self {
            log: log(figure)?,
            error: self.error * slope.abs(),
            ..self
        })
    }

    /// Returns Student's interval of the figure.
    pub fn interval(self, looks: Looks) -> Option<(f64, f64)> {
        let half = if self.error > 0.0 {
            student(self.freedom.min(MOST_FREEDOM), looks.tail)? * self.error
        } else {
            0.0
        };
        Some(((self.log - half).exp(), (self.log + half).exp()))
    }
}

/// Degrees of freedom beyond which no digit changes.
const MOST_FREEDOM: f64 = 1e4;

/// Share of comparisons of equally noisy servers in which the F test keeps the spreads apart.
const UNPOOLED: f64 = 0.35;

/// Gains of rounds in one metric: for each round the logarithm of how many times as good the change is, by all of its
/// servers, and where two of them are equal the logarithm of their ratio.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Gains {
    logs: Vec<f64>,
    equals: Vec<f64>,
    /// Variance of a gain, in multiples of the variance of one server's logarithm.
    variances: f64,
}

impl Gains {
    /// Adds a round: the figures of one or two servers of each side. `None`, and nothing is added, if one is
    /// not a finite number above 0.
    pub fn add(&mut self, base: &[f64], change: &[f64], larger_is_better: bool) -> Option<()> {
        let (base, change) = (logs(base)?, logs(change)?);
        let gain = mean(&change)? - mean(&base)?;
        self.logs.push(if larger_is_better { gain } else { -gain });
        self.variances = 1.0 / base.len() as f64 + 1.0 / change.len() as f64;
        for side in [base, change] {
            self.equals
                .extend(side.windows(2).map(|two| two[1] - two[0]));
        }
        Some(())
    }

    /// Returns the number of rounds.
    pub fn rounds(&self) -> usize {
        self.logs.len()
    }

    /// Returns how many times as good the change is: the geometric mean, without the outer rounds where there are many.
    /// `None` without a round.
    pub fn ratio(&self) -> Option<f64> {
        Some(centre(&self.logs)?.exp())
    }

    /// Returns the gain with its standard error, by the spread of the rounds alone; `None` with fewer rounds than
    /// [`FIRST_LOOK`].
    pub fn mean(&self) -> Option<Mean> {
        Mean::of_logs(&self.logs)
    }

    /// Returns Student's interval of the true ratio. The difference between equal servers is no part of it: half of
    /// that is in each gain already.
    ///
    /// `None` with fewer rounds than [`FIRST_LOOK`].
    pub fn interval(&self, looks: Looks) -> Option<(f64, f64)> {
        self.mean()?.interval(looks)
    }

    /// Returns the interval for two builds of one program, which are equally noisy unless an F test finds otherwise.
    /// Gains and equal servers then measure one noise, and both spreads together know it better than one.
    ///
    /// Do not use it for a problem and its fix: they differ in kind, and the interval would cover too little.
    pub(crate) fn pooled_interval(&self, looks: Looks) -> Option<(f64, f64)> {
        let own = self.mean()?;
        self.pooled(own).unwrap_or(own).interval(looks)
    }

    fn pooled(&self, own: Mean) -> Option<Mean> {
        if self.equals.is_empty() {
            return None;
        }
        let gains = Spread::around(own.log, &self.logs);
        // Equal servers are known to be equal: their mean takes no degree of freedom.
        let equals = Spread::around(0.0, &self.equals);
        let by_gains = gains.squares / self.variances;
        let by_equals = equals.squares / 2.0;
        let noisier = (by_gains / own.freedom) / (by_equals / equals.kept);
        if f_below(noisier, own.freedom, equals.kept) > 1.0 - UNPOOLED {
            return None;
        }
        let freedom = own.freedom + equals.kept;
        let of_one_server = (by_gains + by_equals) / freedom;
        Some(Mean {
            error: (of_one_server * self.variances / gains.kept).sqrt(),
            freedom,
            ..own
        })
    }

    /// Returns [`Gains::interval`], or the span from the least to the greatest gain where there are too few rounds.
    pub fn interval_or_span(&self, looks: Looks) -> Option<(f64, f64)> {
        if let Some(interval) = self.interval(looks) {
            return Some(interval);
        }
        match *sorted(&self.logs) {
            [low, .., high] => Some((low.exp(), high.exp())),
            _ => None,
        }
    }

    /// Returns the noise floor: in 95 of a hundred new runs with as many rounds, the mean ratio of equal servers lies
    /// closer to 1. 0.05 says that one of two equal servers may look up to 5 % better than the other.
    ///
    /// `None` with fewer than [`FIRST_LOOK`] pairs of equal servers.
    pub fn noise_floor(&self) -> Option<f64> {
        if self.equals.len() < FIRST_LOOK as usize {
            return None;
        }
        let Spread { squares, kept } = Spread::around(0.0, &self.equals);
        Some((student(kept, TAIL)? * squares.sqrt() / kept).exp() - 1.0)
    }

    /// Returns the interval of the ratio of two equal servers, which holds 1 on a machine that favors none. `None` as
    /// [`Gains::noise_floor`].
    pub(crate) fn equal_interval(&self, looks: Looks) -> Option<(f64, f64)> {
        Mean::of_logs(&self.equals)?.interval(looks)
    }
}

/// Squared distances from a middle, the outer values drawn in.
struct Spread {
    squares: f64,
    /// Values that are not trimmed.
    kept: f64,
}

impl Spread {
    fn around(middle: f64, logs: &[f64]) -> Self {
        let cut = trimmed(logs.len());
        let sorted = sorted(logs);
        let (low, high) = (sorted[cut], sorted[logs.len() - 1 - cut]);
        let drawn_in = sorted.iter().map(|log| log.clamp(low, high) - middle);
        Self {
            squares: drawn_in.map(|away| away * away).sum(),
            kept: (logs.len() - 2 * cut) as f64,
        }
    }
}

/// Returns the number of values that are trimmed at each end. It depends on their number alone.
fn trimmed(count: usize) -> usize {
    if count < TRIMMED_FROM { 0 } else { count / 5 }
}

fn mean(values: &[f64]) -> Option<f64> {
    Some(values.first()? + away(values)?)
}

/// Returns the distance of the mean from the first value, so that the mean of equal values is exactly their value.
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

/// Returns the geometric mean, as a logarithm, without the outer values where there are many.
fn centre(logs: &[f64]) -> Option<f64> {
    let cut = trimmed(logs.len());
    mean(&sorted(logs)[cut..logs.len() - cut])
}

/// Returns Student's quantile with the share `tail` (at most 0.5) above it. `None` without a degree of freedom.
pub fn student(freedom: f64, tail: f64) -> Option<f64> {
    if freedom <= 0.0 {
        return None;
    }
    let (a, b) = (freedom / 2.0, 0.5);
    let within = (2.0 * tail).inv_inc_beta(a, b, a.ln_beta(b));
    Some((freedom * (1.0 / within - 1.0)).sqrt())
}

/// Returns how often the ratio of two variances with these degrees of freedom is below `ratio` if both are the same
/// (Fisher's F).
fn f_below(ratio: f64, above: f64, below: f64) -> f64 {
    if !ratio.is_finite() {
        return 1.0;
    }
    let (a, b) = (above / 2.0, below / 2.0);
    let at = above * ratio / (above * ratio + below);
    at.inc_beta(a, b, a.ln_beta(b))
}

fn logs(figures: &[f64]) -> Option<Vec<f64>> {
    figures.iter().map(|figure| log(*figure)).collect()
}

fn log(ratio: f64) -> Option<f64> {
    if ratio.is_finite() && ratio > 0.0 && ratio.recip().is_finite() {
        Some(ratio.ln())
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use rand::Rng;
    use rand_pcg::Pcg32;

    use super::*;

    /// Compares quantiles with printed tables.
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

    fn uniform(random: &mut Pcg32) -> f64 {
        f64::from(random.next_u32()) / f64::from(u32::MAX)
    }

    /// Draws from the normal distribution (G. E. P. Box and M. E. Muller, 1958).
    fn normal(random: &mut Pcg32) -> f64 {
        let radius = (-2.0 * uniform(random).max(1e-12).ln()).sqrt();
        radius * (std::f64::consts::TAU * uniform(random)).cos()
    }

    /// Simulates rounds of a base that was measured twice and a change, each with noise of its own.
    fn noisy(rounds: u32, base: f64, change: f64, random: &mut Pcg32) -> Gains {
        let mut gains = Gains::default();
        for _ in 0..rounds {
            let mut figure = |spread: f64| (spread * normal(random)).exp();
            let (bases, change) = ([figure(base), figure(base)], figure(change));
            gains.add(&bases, &[change], true).unwrap();
        }
        gains
    }

    #[test]
    fn the_noise_floor_holds_in_95_of_100_new_runs() {
        let mut random = Pcg32::new(5, 1);
        for rounds in [3, 5, 8, 18] {
            let mut run = || noisy(rounds, 0.05, 0.05, &mut random);
            let holds = (0..4_000).filter(|_| {
                let floor = run().noise_floor().unwrap();
                let (low, high) = run().equal_interval(Looks::ONCE).unwrap();
                let new = (low * high).sqrt();
                new.max(new.recip()) <= 1.0 + floor
            });
            let share = holds.count() as f64 / 4_000.0;
            assert!((0.94..=0.965).contains(&share), "{rounds} rounds: {share}");
        }
    }

    /// Pooling keeps its promise for two builds of one program, which are alike. A problem and its fix are not,
    /// so proofs do not pool.
    #[test]
    fn pooling_takes_fewer_rounds_and_keeps_its_promise_where_both_are_about_as_noisy() {
        let mut random = Pcg32::new(6, 1);
        for (change, least) in [(0.02, 0.975), (0.03, 0.97), (0.08, 0.95)] {
            let (mut covered, mut pooled, mut own) = (0, 0.0, 0.0);
            for _ in 0..4_000 {
                let gains = noisy(5, 0.02, change, &mut random);
                let (low, high) = gains.pooled_interval(Looks::COMPARISON).unwrap();
                covered += u32::from(low <= 1.0 && 1.0 <= high);
                pooled += (high / low).ln();
                let (low, high) = gains.interval(Looks::COMPARISON).unwrap();
                own += (high / low).ln();
            }
            let share = f64::from(covered) / 4_000.0;
            assert!(share >= least, "{change}: {share}");
            assert!(pooled < own, "{change}: {pooled} {own}");
        }
    }
}
