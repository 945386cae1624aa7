//! A share that is read off pairs of rounds, and the claim that all of its interval lies above.

use crate::statistics;
use measurement::figures;

/// The median of the pairs' shares and its 95 % interval; nothing where a round does not tell.
pub fn of_pairs(shares: Option<&[f64]>, seed: u64) -> (Option<f64>, Option<(f64, f64)>) {
    let median = shares.and_then(statistics::median_ratio);
    let interval = shares.and_then(|shares| statistics::median_interval(shares, seed));
    (median, interval)
}

/// What is lacking of the claim: `the solution {verb} 87 % of {what} (95 % interval from 85 %); …`.
pub fn shortfall(
    (verb, what): (&str, &str),
    share: Option<f64>,
    interval: Option<(f64, f64)>,
    claimed: f64,
) -> Option<String> {
    let low = interval.map(|(low, _)| low).filter(|low| !low.is_nan());
    low.is_none_or(|low| low < claimed).then(|| {
        format!(
            "the solution {verb} {} of {what} (95 % interval from {}); {} was claimed.",
            share.map_or_else(|| "an unknown share".to_owned(), figures::percent),
            low.map_or_else(|| "nowhere".to_owned(), figures::percent),
            figures::percent(claimed)
        )
    })
}
