//! The statistics against answers worked out elsewhere, and against properties
//! that must hold for any rounds.

use analysis::statistics::{Side, abba, median_interval, median_ratio, noise_floor};
use rand::Rng as _;
use rand_pcg::Pcg32;

const SEED: u64 = 7;

/// A uniform number between 0 and 1.
fn uniform(random: &mut Pcg32) -> f64 {
    f64::from(random.next_u32()) / f64::from(u32::MAX)
}

/// A standard normal number (Box and Muller).
fn normal(random: &mut Pcg32) -> f64 {
    let radius = (-2.0 * uniform(random).max(1e-12).ln()).sqrt();
    radius * (std::f64::consts::TAU * uniform(random)).cos()
}

fn some_ratios(random: &mut Pcg32, count: usize) -> Vec<f64> {
    (0..count).map(|_| (0.3 * normal(random)).exp()).collect()
}

#[track_caller]
fn close(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-12 * b.abs(), "{a} is not {b}");
}

#[test]
fn rounds_alternate_so_that_drift_favours_neither() {
    use Side::{Problem as A, Solution as B};
    let order: Vec<_> = abba(4).collect();
    assert_eq!(order, [A, B, B, A, A, B, B, A]);
    for pair in order.chunks(2) {
        assert!(pair.contains(&A) && pair.contains(&B));
    }
    let moments = |side| -> usize {
        let at = order.iter().enumerate().filter(|(_, s)| **s == side);
        at.map(|(moment, _)| moment).sum()
    };
    assert_eq!(moments(A), moments(B), "a steady drift cancels");
    assert_eq!(abba(0).count(), 0);
}

#[test]
fn the_median_is_the_middle_ratio() {
    close(median_ratio(&[3.0, 1.0, 2.0]).unwrap(), 2.0);
    close(median_ratio(&[2.0, 8.0]).unwrap(), 4.0);
    close(median_ratio(&[5.0]).unwrap(), 5.0);
    close(median_ratio(&[1e300, 1e300]).unwrap(), 1e300);
}

#[test]
fn one_wild_round_hardly_moves_the_median() {
    let calm = median_ratio(&[300.0, 310.0, 320.0, 330.0, 340.0]).unwrap();
    let wild = median_ratio(&[300.0, 310.0, 320.0, 330.0, 34_000.0]).unwrap();
    close(calm, wild);
}

/// Enumerating all 6^6 resamples of these six ratios puts 0.87 % of the medians
/// at or below the lowest ratio, which is more than the tail of 0.24 %: so the
/// interval is the whole span.
#[test]
fn six_pairs_give_the_span_of_their_ratios() {
    let ratios = [4.0, 1.0, 6.0, 2.0, 5.0, 3.0];
    assert_eq!(median_interval(&ratios, SEED), Some((1.0, 6.0)));
}

/// Eleven ratios 1 to 11: the resampled median is at most `k` with the chance
/// that at least six of eleven draws are, a binomial sum; the interval begins
/// where that chance exceeds the tail of 0.972 %, and ends as far from the top.
#[test]
fn eleven_pairs_give_the_quantiles_of_the_binomial() {
    let chance_at_most = |k: i32| -> f64 {
        let p = f64::from(k) / 11.0;
        let choose = [462.0, 330.0, 165.0, 55.0, 11.0, 1.0];
        (6..=11)
            .zip(choose)
            .map(|(n, ways)| ways * p.powi(n) * (1.0 - p).powi(11 - n))
            .sum()
    };
    let low = (1..=11).find(|k| chance_at_most(*k) > 0.009_722).unwrap();
    let ratios: Vec<f64> = (1..=11).map(f64::from).collect();
    let expected = (f64::from(low), f64::from(12 - low));
    assert_eq!(median_interval(&ratios, SEED), Some(expected));
}

#[test]
fn the_same_seed_gives_the_same_bits() {
    let ratios = some_ratios(&mut Pcg32::new(1, 1), 9);
    let bits = || median_interval(&ratios, SEED).map(|(low, high)| (low.to_bits(), high.to_bits()));
    assert_eq!(bits().unwrap(), bits().unwrap());
}

#[test]
fn another_seed_changes_next_to_nothing() {
    let ratios = some_ratios(&mut Pcg32::new(2, 1), 15);
    let (low, high) = median_interval(&ratios, SEED).unwrap();
    for seed in 0..20 {
        let (other_low, other_high) = median_interval(&ratios, seed).unwrap();
        assert!((other_low / low - 1.0).abs() < 0.1, "{other_low} {low}");
        assert!((other_high / high - 1.0).abs() < 0.1, "{other_high} {high}");
    }
}

#[test]
fn an_interval_holds_its_median_and_stays_within_the_ratios() {
    let mut random = Pcg32::new(3, 1);
    for count in 2..40 {
        let ratios = some_ratios(&mut random, count);
        let median = median_ratio(&ratios).unwrap();
        let (low, high) = median_interval(&ratios, SEED).unwrap();
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let most = ratios.iter().copied().fold(0.0, f64::max);
        assert!(least <= low && low <= median, "{count}: {low} {median}");
        assert!(median <= high && high <= most, "{count}: {median} {high}");
    }
}

#[test]
fn swapping_the_sides_gives_the_reciprocal() {
    let mut random = Pcg32::new(4, 1);
    for count in 2..20 {
        let ratios = some_ratios(&mut random, count);
        let turned: Vec<f64> = ratios.iter().map(|ratio| ratio.recip()).collect();
        let median = |ratios: &[f64]| median_ratio(ratios).unwrap();
        close(median(&ratios), median(&turned).recip());
        let (low, high) = median_interval(&ratios, SEED).unwrap();
        let (turned_low, turned_high) = median_interval(&turned, SEED).unwrap();
        close(low, turned_high.recip());
        close(high, turned_low.recip());
        let widest = |ratios: &[f64]| 1.0 + noise_floor(ratios).unwrap();
        close(widest(&ratios), widest(&turned));
    }
}

#[test]
fn equal_ratios_leave_no_doubt() {
    let (low, high) = median_interval(&[1_000.0; 6], SEED).unwrap();
    close(low, 1_000.0);
    close(high, 1_000.0);
}

/// What "95 %" promises, at the number of pairs that chapters use.
#[test]
fn intervals_hold_the_true_median_at_least_95_times_of_a_hundred() {
    let mut random = Pcg32::new(5, 1);
    for pairs in [6, 10] {
        let trials = 400;
        let held = (0..trials)
            .filter(|trial| {
                let ratios = some_ratios(&mut random, pairs);
                let (low, high) = median_interval(&ratios, *trial).unwrap();
                (low..=high).contains(&1.0)
            })
            .count();
        let share = held as f64 / trials as f64;
        // Three standard errors of 400 trials below 95 %.
        assert!(share > 0.917, "{pairs} pairs: {share}");
    }
}

#[test]
fn the_noise_floor_is_the_widest_difference_of_equals() {
    close(noise_floor(&[1.02, 0.8, 1.1]).unwrap(), 0.25);
    close(noise_floor(&[1.0]).unwrap(), 0.0);
}

#[test]
fn nothing_comes_of_nothing() {
    let infinite = [f64::INFINITY, f64::NEG_INFINITY];
    for nonsense in infinite.into_iter().chain([f64::NAN, 0.0, -1.0, 1e-320]) {
        let ratios = [2.0, nonsense, 3.0];
        assert_eq!(median_ratio(&ratios), None, "{nonsense}");
        assert_eq!(median_interval(&ratios, SEED), None, "{nonsense}");
        assert_eq!(noise_floor(&ratios), None, "{nonsense}");
    }
    assert_eq!(median_ratio(&[]), None);
    assert_eq!(median_interval(&[2.0], SEED), None);
    assert_eq!(noise_floor(&[]), None);
}
