//! Values of a route, drawn at random: those whose answers are learned.

use rand::seq::SliceRandom as _;
use rand_pcg::Pcg32;

/// Largest number of a route's values whose answers are learned before the load.
pub(super) const LEARNT: usize = 64;
/// Largest number of further values of a route whose answers are compared before each round. With the first ones, the
/// three rounds of the shortest comparison have 352, and a change that is wrong for 1 % of the values shows in 97 % of
/// such comparisons.
pub(super) const LEARNT_IN_A_ROUND: usize = 96;
/// Random streams that draw the values whose answers are learned, one for each route. Those of the load lie elsewhere.
const DRAW: u64 = 1 << 42;

/// Values of a route in a random order, in which their answers are learned.
#[derive(Debug, Clone)]
pub(super) struct Draw {
    order: Vec<usize>,
    taken: usize,
}

impl Draw {
    /// Draws from nothing.
    pub(super) fn none() -> Self {
        Self {
            order: Vec::new(),
            taken: 0,
        }
    }

    /// Draws the order of `values` values of the route with this number.
    pub(super) fn of(values: usize, seed: u64, route: usize) -> Self {
        let mut order: Vec<usize> = (0..values).collect();
        order.shuffle(&mut Pcg32::new(seed, DRAW + route as u64));
        Self { order, taken: 0 }
    }

    /// Takes up to `most` of the values that are left.
    pub(super) fn take(&mut self, most: usize) -> Vec<usize> {
        let left = &self.order[self.taken..];
        let taken = left[..most.min(left.len())].to_vec();
        self.taken += taken.len();
        taken
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Returns the share of a thousand comparisons of three rounds that ask for a value of the first `wrong`.
    fn found(values: usize, wrong: usize) -> f64 {
        let mut found = 0;
        for seed in 0..1000 {
            let mut draw = Draw::of(values, seed, 0);
            let mut asked = draw.take(LEARNT);
            for _ in 0..statistics::FIRST_LOOK {
                asked.extend(draw.take(LEARNT_IN_A_ROUND));
            }
            found += u32::from(asked.iter().any(|index| *index < wrong));
        }
        f64::from(found) / 1000.0
    }

    #[test]
    fn a_change_that_is_wrong_for_one_value_in_a_hundred_is_found_in_19_of_20_runs() {
        for values in [300, 500, 5000, 100_000] {
            let share = found(values, values / 100);
            println!("{values} values: found in {share} of the shortest runs");
            assert!(share >= 0.95, "{values}: {share}");
        }
        assert!(found(5000, 0) < 1e-9);
    }

    #[test]
    fn each_run_draws_other_values_and_each_value_once() {
        let drawn = |seed, route| {
            let mut draw = Draw::of(500, seed, route);
            [draw.take(64), draw.take(96)].concat()
        };
        let first = drawn(1, 0);
        assert_eq!(first, drawn(1, 0));
        assert_ne!(first, drawn(2, 0));
        assert_ne!(first, drawn(1, 1));
        assert_eq!(first.iter().collect::<BTreeSet<_>>().len(), 160);
        assert_eq!(Draw::of(3, 1, 0).take(64).len(), 3);
    }
}
