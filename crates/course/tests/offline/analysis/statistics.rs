//! The statistics against results worked out elsewhere, and how often they are wrong.

use statistics::{Gains, Looks, Mean, Side, abba, median_ratio, triplets};

use crate::analysis::noise;

#[track_caller]
fn close(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-9 * b.abs(), "{a} is not {b}");
}

#[test]
fn triplets_favour_no_side_on_a_machine_that_slowly_changes() {
    let order: Vec<Side> = triplets(6).flatten().collect();
    for side in [Side::Base, Side::Change, Side::Again] {
        let places = |place| order.iter().skip(place).step_by(3).filter(|s| **s == side);
        for place in 0..3 {
            assert_eq!(places(place).count(), 2, "{side:?}");
        }
    }
    let first_of_two = order.chunks(3).filter(|triplet| {
        let place = |side| triplet.iter().position(|one| *one == side);
        place(Side::Base) < place(Side::Change)
    });
    assert_eq!(first_of_two.count(), 3);
    assert_eq!(triplets(7).last(), triplets(1).next());
}

#[test]
fn two_sides_alternate() {
    assert_eq!(abba('A', 'B', 3).collect::<String>(), "ABBAAB");
    assert_eq!(abba('A', 'B', 0).count(), 0);
}

#[test]
fn a_median_of_two_is_their_mean_by_the_logarithms() {
    close(median_ratio(&[2.0, 8.0]).unwrap(), 4.0);
    close(median_ratio(&[0.5, 2.0]).unwrap(), 1.0);
    close(median_ratio(&[5.0]).unwrap(), 5.0);
    close(median_ratio(&[3.0, 1.0, 2.0]).unwrap(), 2.0);
}

/// Collects the gains of triplets: a problem and two fixes.
fn gains(rounds: &[(f64, [f64; 2])]) -> Option<Gains> {
    let mut gains = Gains::default();
    for (problem, fixes) in rounds {
        gains.add(&[*problem], fixes, true)?;
    }
    Some(gains)
}

#[test]
fn equal_ratios_leave_no_doubt() {
    let gains = gains(&[(1.0, [1_000.0; 2]); 6]).unwrap();
    assert_eq!(
        gains.interval(Looks::ONCE),
        Some((gains.ratio().unwrap(), gains.ratio().unwrap()))
    );
    close(gains.ratio().unwrap(), 1_000.0);
    assert_eq!(gains.noise_floor(), Some(0.0));
}

#[test]
fn swapping_the_sides_gives_the_reciprocal() {
    let rounds = [(1.0, [1.9, 2.2]), (1.1, [2.0, 2.4]), (0.9, [2.3, 2.1])];
    let (mut one, mut other) = (Gains::default(), Gains::default());
    for (problem, fixes) in &rounds {
        one.add(&[*problem], fixes, true).unwrap();
        other.add(fixes, &[*problem], true).unwrap();
    }
    let (low, high) = one.interval(Looks::ONCE).unwrap();
    let (turned_low, turned_high) = other.interval(Looks::ONCE).unwrap();
    close(low, turned_high.recip());
    close(high, turned_low.recip());
    assert_eq!(one.noise_floor(), other.noise_floor());
}

#[test]
fn every_round_of_both_sides_is_in_the_gain() {
    // One of the two fixes is twice as good, the other just as good: the square root of two.
    let gains = gains(&[(1.0, [2.0, 1.0]); 3]).unwrap();
    close(gains.ratio().unwrap(), 2.0_f64.sqrt());
    assert_eq!(gains.rounds(), 3);
}

#[test]
fn one_round_that_was_disturbed_moves_little_among_many() {
    let mut rounds = vec![(1.0, [2.0, 2.0]); 8];
    rounds[3].1 = [0.2, 0.2];
    close(gains(&rounds).unwrap().ratio().unwrap(), 2.0);
}

#[test]
fn a_quotient_is_as_uncertain_as_both() {
    let (four, two) = ([3.9, 4.0, 4.1, 4.0], [1.9, 2.0, 2.1]);
    let (four, two) = (Mean::of(&four).unwrap(), Mean::of(&two).unwrap());
    let width = |mean: Mean| {
        let (low, high) = mean.interval(Looks::ONCE).unwrap();
        (high / low).ln()
    };
    let exact = Mean::exactly(2.0).unwrap();
    close(four.over(exact).figure(), four.figure() / 2.0);
    close(width(four.over(exact)), width(four));
    assert!(width(four.over(two)) > width(four));
    assert!(width(four.over(two)) < width(four) + width(two));
    assert!(width(exact).abs() < 1e-12);
    // A law that squares its input doubles the uncertainty.
    close(width(two.becomes(4.0, 2.0).unwrap()), 2.0 * width(two));
    assert_eq!(Mean::of(&[1.0, 2.0]), None);
}

#[test]
fn nothing_comes_of_nothing() {
    let infinite = [f64::INFINITY, f64::NEG_INFINITY];
    for nonsense in infinite.into_iter().chain([f64::NAN, 0.0, -1.0, 1e-320]) {
        let ratios = [2.0, nonsense, 3.0];
        assert_eq!(median_ratio(&ratios), None, "{nonsense}");
        assert_eq!(gains(&[(1.0, [2.0, nonsense])]), None, "{nonsense}");
        assert_eq!(gains(&[(nonsense, [2.0, 2.0])]), None, "{nonsense}");
    }
    assert_eq!(median_ratio(&[]), None);
    let few = gains(&[(1.0, [2.0, 2.1]), (1.0, [2.2, 2.0])]).unwrap();
    assert_eq!(few.interval(Looks::ONCE), None);
    assert_eq!(few.noise_floor(), None);
    let (low, high) = few.interval_or_span(Looks::ONCE).unwrap();
    close(low, 4.2_f64.sqrt());
    close(high, 4.4_f64.sqrt());
}

/// Checks "95 %", "proved" and "holds" for each kind of noise that METHODOLOGY.md names.
#[test]
fn error_rates_are_those_of_the_methodology() {
    let all = noise::all_rates();
    let tables = noise::tables(&all);
    println!("{}\n{}", tables[0], tables[1]);
    for (model, rates) in &all {
        let covered = rates.least_covered();
        if model.keeps_the_ratio() {
            assert!(covered >= 0.95, "{model:?}: {covered}");
            let wrong = rates.proved[0];
            assert!(wrong < 0.025, "{model:?}: {wrong}");
            let wrong = rates.most_wrongly_predicted();
            assert!(wrong < 0.05, "{model:?}: {wrong}");
            let wrong = rates.most_wrongly_measured();
            assert!(wrong < 0.05, "{model:?}: {wrong}");
        } else {
            assert!(covered < 0.95, "{model:?} is told as a limit: {covered}");
        }
    }
    let text = include_str!("../../../../../METHODOLOGY.md");
    for table in tables {
        assert!(
            text.contains(&table),
            "METHODOLOGY.md has another table than:\n{table}"
        );
    }
}
