//! Ratios of paired rounds: their mean, its interval, and when enough of them are known.
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
    let first = *ratios.first()?;
    // Relative to one of them, so that equal ratios give themselves.
    let logs: Option<Vec<f64>> = ratios.iter().map(|ratio| log(*ratio)).collect();
    let own = log(first)?;
    let sum: f64 = logs?.iter().map(|log| log - own).sum();
    Some(first * (sum / ratios.len() as f64).exp())
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

/// Each tail of the interval that is reported: 2.5 %, so that it is one of 95 %.
pub const REPORTED: f64 = 0.025;

/// An interval of the mean ratio that leaves out `tail` on each side.
///
/// `None` with fewer than two ratios, or with one that is not a finite number above 0.
pub fn interval(ratios: &[f64], tail: f64) -> Option<(f64, f64)> {
    let ratio = mean_ratio(ratios)?;
    let mean = log(ratio)?;
    let freedom = ratios.len().checked_sub(1).filter(|freedom| *freedom > 0)? as f64;
    let squares = ratios
        .iter()
        .filter_map(|ratio| Some((log(*ratio)? - mean).powi(2)));
    let error = (squares.sum::<f64>() / freedom / ratios.len() as f64).sqrt();
    let away = student(freedom, tail)? * error;
    Some((ratio * (-away).exp(), ratio * away.exp()))
}

/// Student's quantile that `tail`, at most a half, lies above. `None` without a degree of freedom.
pub(crate) fn student(freedom: f64, tail: f64) -> Option<f64> {
    if freedom <= 0.0 {
        return None;
    }
    let (a, b) = (freedom / 2.0, 0.5);
    let within = (2.0 * tail).inv_inc_beta(a, b, a.ln_beta(b));
    Some((freedom * (1.0 / within - 1.0)).sqrt())
}

/// What a wrong decision may cost over all looks: once in 200 at the very bound.
const WRONG: f64 = 0.005;

/// The tail at which a look decides that sees `pairs` of at most `most` pairs, the first of them at
/// `first`. The last look may spend half of what is allowed, and the looks before it share the
/// other half; that these add up is Bonferroni's bound, which needs no assumption on how the looks
/// depend on each other.
pub fn tail_of_look(pairs: u32, first: u32, most: u32) -> f64 {
    if pairs < most {
        WRONG / 2.0 / f64::from(most.saturating_sub(first).max(1))
    } else {
        WRONG / 2.0
    }
}

/// How far from 1 the ratio of equal servers may be, by the estimator of the effect: 0.05 says that
/// one of two equal servers looks up to 5 % better than the other.
///
/// Each element is the ratio of two rounds on equal servers. `None` as [`interval`].
pub fn noise_floor(equal_ratios: &[f64]) -> Option<f64> {
    let (low, high) = interval(equal_ratios, REPORTED)?;
    Some(high.max(low.recip()) - 1.0)
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
