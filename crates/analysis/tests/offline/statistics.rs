//! The statistics against answers worked out elsewhere, and how often they are wrong.

use duel::statistics::{
    REPORTED, Side, abba, interval, mean_ratio, median_ratio, noise_floor, tail_of_look, triplets,
};

use crate::noise;

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
fn a_mean_is_that_of_the_logarithms() {
    close(mean_ratio(&[2.0, 8.0]).unwrap(), 4.0);
    close(mean_ratio(&[0.5, 2.0]).unwrap(), 1.0);
    close(mean_ratio(&[5.0]).unwrap(), 5.0);
    close(median_ratio(&[3.0, 1.0, 2.0]).unwrap(), 2.0);
    close(median_ratio(&[2.0, 8.0]).unwrap(), 4.0);
}

#[test]
fn equal_ratios_leave_no_doubt() {
    assert_eq!(interval(&[1_000.0; 6], REPORTED), Some((1_000.0, 1_000.0)));
    assert_eq!(noise_floor(&[1.0; 3]), Some(0.0));
}

#[test]
fn swapping_the_sides_gives_the_reciprocal() {
    let ratios = [1.9, 2.2, 2.0, 2.4];
    let turned = ratios.map(f64::recip);
    let (low, high) = interval(&ratios, REPORTED).unwrap();
    let (turned_low, turned_high) = interval(&turned, REPORTED).unwrap();
    close(low, turned_high.recip());
    close(high, turned_low.recip());
    close(noise_floor(&ratios).unwrap(), noise_floor(&turned).unwrap());
}

#[test]
fn nothing_comes_of_nothing() {
    let infinite = [f64::INFINITY, f64::NEG_INFINITY];
    for nonsense in infinite.into_iter().chain([f64::NAN, 0.0, -1.0, 1e-320]) {
        let ratios = [2.0, nonsense, 3.0];
        assert_eq!(mean_ratio(&ratios), None, "{nonsense}");
        assert_eq!(median_ratio(&ratios), None, "{nonsense}");
        assert_eq!(interval(&ratios, REPORTED), None, "{nonsense}");
        assert_eq!(noise_floor(&ratios), None, "{nonsense}");
    }
    assert_eq!(mean_ratio(&[]), None);
    assert_eq!(median_ratio(&[]), None);
    assert_eq!(interval(&[2.0], REPORTED), None);
}

#[test]
fn looks_share_what_a_wrong_decision_may_cost() {
    for most in 3..20 {
        let spent: f64 = (3..=most).map(|look| tail_of_look(look, 3, most)).sum();
        close(spent, if most == 3 { 0.0025 } else { 0.005 });
    }
}

/// What "95 %" and "proved" promise, for each kind of noise that METHODOLOGY.md names.
#[test]
fn error_rates_are_those_of_the_methodology() {
    let all = noise::all_rates();
    for (model, rates) in &all {
        let [covered, wrong] = [rates.covered, rates.wrongly_proved];
        if model.keeps_the_ratio() {
            assert!(covered > 0.94, "{model:?}: {covered}");
            assert!(wrong < 0.005 + 0.002, "{model:?}: {wrong}");
        } else {
            assert!(covered < 0.94, "{model:?} is told as a limit: {covered}");
        }
    }
    let text = include_str!("../../../../METHODOLOGY.md");
    let table = noise::table(&all);
    assert!(
        text.contains(&table),
        "METHODOLOGY.md has another table than:\n{table}"
    );
}
