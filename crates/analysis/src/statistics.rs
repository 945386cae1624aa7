//! Ratios of paired rounds: their median, its interval, and how far noise alone goes.
//!
//! Everything is computed with additions, products, quotients and square roots,
//! which IEEE 754 rounds alike everywhere, and with a generator of fixed
//! output: the same rounds and seed give the same bits on any machine.

use rand::Rng as _;
use rand_pcg::Pcg32;

/// The two servers of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The one with the fault.
    Problem,
    /// The one without.
    Solution,
}

/// The order of `pairs` pairs of rounds: ABBA ABBA …. Each side comes first
/// as often as second, so a machine that slowly warms up or slows down favours
/// neither.
pub fn abba(pairs: u32) -> impl Iterator<Item = Side> {
    (0..pairs).flat_map(|pair| {
        if pair % 2 == 0 {
            [Side::Problem, Side::Solution]
        } else {
            [Side::Solution, Side::Problem]
        }
    })
}

/// The median of ratios: the middle one, or the geometric mean of the middle
/// two, so that the median of the reciprocals is the reciprocal of the median.
///
/// `None` without ratios, or with one that is not a finite number above 0.
pub fn median_ratio(ratios: &[f64]) -> Option<f64> {
    let mut sorted = ratios.to_vec();
    (!sorted.is_empty() && sorted.iter().all(|ratio| is_ratio(*ratio))).then(|| {
        sorted.sort_unstable_by(f64::total_cmp);
        middle(&sorted)
    })
}

/// A 95 % interval of the median ratio: the expanded percentile bootstrap.
///
/// The pairs are drawn again with replacement 9,999 times; the interval runs
/// between two quantiles of those medians. With few pairs the plain quantiles
/// (2.5 % and 97.5 %) give intervals that are too narrow, so the tails are
/// those of T. C. Hesterberg, "What Teachers Should Know About the Bootstrap",
/// The American Statistician 69(4), 2015, section 3.3: Φ(-√(n/(n-1)) t) with t
/// Student's 97.5 % quantile for n-1 degrees of freedom. `BCa` is no fix here:
/// its acceleration comes from a jackknife, which fails for the median (Efron
/// and Tibshirani, "An Introduction to the Bootstrap", 1993, section 11.6).
/// From six pairs on, simulated intervals hold the true median at least 95 times
/// of a hundred; below six the span of all ratios already holds it less often.
///
/// `None` with fewer than two ratios, or with one that is not a finite number
/// above 0.
pub fn median_interval(ratios: &[f64], seed: u64) -> Option<(f64, f64)> {
    if ratios.len() < 2 || !ratios.iter().all(|ratio| is_ratio(*ratio)) {
        return None;
    }
    let count = u32::try_from(ratios.len()).ok()?;
    let mut random = Pcg32::new(seed, STREAM);
    let mut drawn = vec![0.0; ratios.len()];
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            for slot in &mut drawn {
                *slot = ratios[below(count, random.next_u32())];
            }
            drawn.sort_unstable_by(f64::total_cmp);
            middle(&drawn)
        })
        .collect();
    medians.sort_unstable_by(f64::total_cmp);
    let tail = TAILS[ratios.len().min(TAILS.len() - 1)];
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "0 to 250"
    )]
    let cut = (tail * (RESAMPLES + 1) as f64) as usize;
    let low = cut.saturating_sub(1);
    Some((medians[low], medians[RESAMPLES - 1 - low]))
}

/// How far from 1 the ratio of equal servers wandered at most: 0.05 says that
/// one of two equal servers looked up to 5 % better than the other.
///
/// Each element is the ratio of two rounds on equal servers that ran one after
/// the other. The largest deviation counts, not a typical one: a handful of
/// comparisons says little about the spread, and a floor must not be too low.
///
/// `None` without ratios, or with one that is not a finite number above 0.
pub fn noise_floor(equal_ratios: &[f64]) -> Option<f64> {
    if equal_ratios.is_empty() || !equal_ratios.iter().all(|ratio| is_ratio(*ratio)) {
        return None;
    }
    let widest = equal_ratios
        .iter()
        .map(|ratio| ratio.max(ratio.recip()))
        .fold(1.0, f64::max);
    Some(widest - 1.0)
}

const RESAMPLES: usize = 9_999;

/// Any odd number would do; a fixed one keeps the result fixed.
const STREAM: u64 = 0x9e37_79b9;

/// Hesterberg's tail for n pairs at index n; more pairs than listed use the
/// last, which errs on the wide side.
const TAILS: [f64; 31] = [
    0.0, 0.0, 0.0, 0.000_000, 0.000_119, 0.000_954, 0.002_432, 0.004_109, 0.005_738, 0.007_225,
    0.008_551, 0.009_722, 0.010_757, 0.011_671, 0.012_483, 0.013_207, 0.013_856, 0.014_439,
    0.014_966, 0.015_445, 0.015_881, 0.016_280, 0.016_646, 0.016_983, 0.017_294, 0.017_582,
    0.017_850, 0.018_099, 0.018_332, 0.018_550, 0.018_754,
];

fn is_ratio(value: f64) -> bool {
    value.is_finite() && value > 0.0 && value.recip().is_finite()
}

/// The median of sorted, positive values.
fn middle(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[half]
    } else {
        // Not the root of the product: two equal ratios shall give themselves.
        sorted[half - 1] * (sorted[half] / sorted[half - 1]).sqrt()
    }
}

/// An index below `count` from 32 random bits; the bias is below one in 10^8.
fn below(count: u32, random: u32) -> usize {
    ((u64::from(random) * u64::from(count)) >> 32) as usize
}
