//! Other programs that do the same work, beside the solution.

use super::Table;
use crate::{provenance::provenance, rows::unknown};
use analysis::baseline;
use measurement::{claim::Metric, figures, record::Record};

/// A row each, the solution first; empty where none was measured.
pub fn baselines(record: &Record) -> String {
    let measured = baseline::baselines(record);
    if measured.is_empty() {
        return String::new();
    }
    let cell = |metric: Metric, value: Option<f64>| value.map_or_else(unknown, |v| metric.text(v));
    let rows = measured.into_iter().map(|one| {
        vec![
            one.service,
            cell(Metric::RequestsPerSecond, one.requests_per_second),
            one.of_the_solutions.map_or_else(unknown, figures::percent),
            cell(Metric::P50Ms, one.p50_ms),
            cell(Metric::P99Ms, one.p99_ms),
        ]
    });
    let heads = [
        "requests per second",
        "of the solution's",
        "median",
        "99th percentile",
    ];
    let table = Table::new(&["service"], &heads, rows.collect());
    format!("{}\n{}", table.markdown(), provenance(record))
}
