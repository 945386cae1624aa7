//! Counters of the services themselves: the ones that the change moved.

use serde::Serialize;

use crate::FIRST_LOOK;
use crate::metric::{Metric, Triplet, grows};
use crate::verdict::{DEFAULT_MARGIN, Estimate};

/// Share by which the growth of a counter must differ, beyond doubt, to count as different.
const MARGIN: f64 = 2.0 * DEFAULT_MARGIN;
/// Largest number of counters that are reported.
const MOST: usize = 5;

/// A counter that grows differently, per request.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Counter {
    /// Its name.
    pub counter: String,
    /// Growth per request in the base.
    pub base: f64,
    /// Growth per request in the change.
    pub change: f64,
    /// Change against base; `None` if one of them does not grow at all.
    pub ratio: Option<f64>,
    /// Interval of the ratio.
    pub interval: Option<(f64, f64)>,
}

impl Counter {
    /// Returns how far from 1 its ratio is, as a logarithm.
    fn size(&self) -> f64 {
        match self.ratio {
            Some(ratio) => ratio.ln().abs(),
            None => f64::INFINITY,
        }
    }
}

/// Returns the counters that both have and whose growth per request differs most.
pub fn changed(rounds: &[Triplet]) -> Vec<Counter> {
    let mut all: Vec<Counter> = Vec::new();
    let [first, ..] = rounds else {
        return all;
    };
    if rounds.len() < FIRST_LOOK as usize {
        return all;
    }
    for key in first.base.keys() {
        if grows(key) {
            match of_one(key, rounds) {
                Some(counter) => all.push(counter),
                None => all.extend(of_none(key, rounds)),
            }
        }
    }
    all.sort_by(|a, b| b.size().total_cmp(&a.size()));
    all.truncate(MOST);
    all
}

fn of_one(key: &str, rounds: &[Triplet]) -> Option<Counter> {
    let metric = Metric {
        key: key.to_owned(),
        label: key.to_owned(),
        unit: crate::metric::Unit::Count,
        larger_is_better: None,
    };
    let estimate = Estimate::of(&metric, rounds)?;
    let (low, high) = estimate.interval?;
    let is_beyond = low > 1.0 + MARGIN || high < (1.0 + MARGIN).recip();
    if !is_beyond {
        return None;
    }
    Some(Counter {
        counter: key.to_owned(),
        base: estimate.base,
        change: estimate.change,
        ratio: Some(estimate.ratio),
        interval: estimate.interval,
    })
}

/// Returns a counter that grows in every round of the one build, and in none of the other.
fn of_none(key: &str, rounds: &[Triplet]) -> Option<Counter> {
    let (mut is_new, mut is_gone) = (true, true);
    let (mut base_sum, mut change_sum) = (0.0, 0.0);
    for round in rounds {
        let base = [round.base.get(key)?, round.again.get(key)?];
        let change = round.change.get(key)?;
        is_new &= base == [0.0, 0.0] && change > 0.0;
        is_gone &= base[0] > 0.0 && base[1] > 0.0 && change == 0.0;
        base_sum += base[0] + base[1];
        change_sum += change;
    }
    if !is_new && !is_gone {
        return None;
    }
    let count = rounds.len() as f64;
    Some(Counter {
        counter: key.to_owned(),
        base: base_sum / (2.0 * count),
        change: change_sum / count,
        ratio: None,
        interval: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::Figures;

    fn figures(values: &[(&str, f64)]) -> Figures {
        let mut figures = Figures::default();
        for (key, value) in values {
            figures.insert((*key).to_owned(), *value);
        }
        figures
    }

    #[test]
    fn counters_that_grow_differently_beyond_doubt_are_told_the_most_changed_first() {
        let round = |noise: f64| {
            let of = |queries: f64, retries: f64, change: f64| {
                figures(&[
                    ("db_queries_total", queries),
                    ("db_retries_total", retries),
                    ("bytes_sum", change * (1.0 + noise)),
                    ("cache_hits_total", 1.0 + 0.05 * noise),
                    ("wild_total", 1.0 + 40.0 * noise * change),
                    ("connections", change),
                    ("requests_per_second", change),
                ])
            };
            Triplet {
                base: of(12.0, 0.0, 1.0),
                change: of(2.0, 0.5, 1.5),
                again: of(12.0, 0.0, 1.0 + noise),
                is_rebuilt: false,
            }
        };
        let rounds = [0.01, -0.02, 0.0].map(round);
        let told = changed(&rounds);
        let names: Vec<&str> = told.iter().map(|one| &*one.counter).collect();
        assert_eq!(names, ["db_retries_total", "db_queries_total", "bytes_sum"]);
        assert_eq!(
            (told[0].base, told[0].change, told[0].ratio),
            (0.0, 0.5, None)
        );
        assert!((told[1].ratio.unwrap() - 1.0 / 6.0).abs() < 1e-9);
        let (low, high) = told[2].interval.unwrap();
        assert!(low > 1.1 && low < 1.5 && high > 1.5, "{low} {high}");
        assert_eq!(changed(&rounds[..2]), []);
    }
}
