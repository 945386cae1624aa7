//! Other programs that do the same work, beside the solution.

use std::fmt::Write as _;

use super::provenance;
use crate::{
    claim::{Metric, SOLUTION},
    figures,
    record::{Purpose, Record, Round},
    verdict::median_of,
};

/// A row each, the solution first; empty where none was measured.
pub fn yardsticks(record: &Record) -> String {
    let rounds: Vec<&Round> = record.rounds_for(Purpose::Yardstick).collect();
    let mut names: Vec<&str> = Vec::new();
    for round in &rounds {
        if !names.contains(&round.variant.as_str()) {
            names.push(&round.variant);
        }
    }
    let rate = Metric::RequestsPerSecond;
    let Some(own) = median_of(rate, &rounds, SOLUTION) else {
        return String::new();
    };
    let mut text = String::from(
        "| service | requests a second | of the solution's | median | 99th percentile |\n\
         | --- | ---: | ---: | ---: | ---: |\n",
    );
    for name in names {
        let text_of = |metric: Metric| {
            median_of(metric, &rounds, name).map_or_else(super::unknown, |v| metric.text(v))
        };
        let share = median_of(rate, &rounds, name).map_or(f64::NAN, |theirs| theirs / own);
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "| {name} | {} | {} | {} | {} |",
            text_of(rate),
            figures::percent(share),
            text_of(Metric::P50Ms),
            text_of(Metric::P99Ms)
        );
    }
    let _ = write!(text, "\n{}", provenance(record));
    text
}
