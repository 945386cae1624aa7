//! Other programs that do the same work, beside the solution.

use std::fmt::Write as _;

use super::provenance;
use crate::{
    claim::{Metric, SOLUTION},
    figures,
    record::{Purpose, Record},
    statistics,
};

/// A row each, the solution first; empty where none was measured.
pub fn yardsticks(record: &Record) -> String {
    let mut names: Vec<&str> = Vec::new();
    for round in record.rounds_for(Purpose::Yardstick) {
        if !names.contains(&round.variant.as_str()) {
            names.push(&round.variant);
        }
    }
    let rate = Metric::RequestsPerSecond;
    let Some(own) = median(record, rate, SOLUTION) else {
        return String::new();
    };
    let mut text = String::from(
        "| service | requests a second | of the solution's | median | 99th percentile |\n\
         | --- | ---: | ---: | ---: | ---: |\n",
    );
    for name in names {
        let text_of = |metric: Metric| {
            median(record, metric, name).map_or_else(super::unknown, |v| metric.text(v))
        };
        let share = median(record, rate, name).map_or(f64::NAN, |theirs| theirs / own);
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

fn median(record: &Record, metric: Metric, name: &str) -> Option<f64> {
    let values: Option<Vec<f64>> = record
        .rounds_for(Purpose::Yardstick)
        .filter(|round| round.variant == name)
        .map(|round| metric.of(&round.outcome))
        .collect();
    statistics::median_ratio(&values?)
}
