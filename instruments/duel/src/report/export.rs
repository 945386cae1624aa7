//! A comparison's figures for tools that keep them over time.
//!
//! Sources: Bencher's metric format, <https://bencher.dev/docs/reference/bencher-metric-format>; the custom formats of
//! github-action-benchmark, <https://github.com/benchmark-action/github-action-benchmark>.

use serde_json::{Map, Value, json};
use statistics::metric::Unit;

use super::{Comparison, Told};

/// Returns the name and the content of each file.
pub fn files(comparison: &Comparison) -> [(&'static str, String); 3] {
    let (mut bigger, mut smaller) = (Vec::new(), Vec::new());
    for told in &comparison.metrics {
        if told.unit == Unit::PerSecond {
            bigger.extend(entry(told));
        } else if told.ratio.is_some() {
            smaller.extend(entry(told));
        }
    }
    let files = [
        ("bencher.json", bencher(comparison)),
        ("bigger-is-better.json", bigger.into()),
        ("smaller-is-better.json", smaller.into()),
    ];
    files.map(|(name, json)| (name, format!("{json:#}\n")))
}

/// Returns a benchmark of the change's own figures for each route, and another of its ratios with their intervals.
/// Only ratios can be compared between machines.
fn bencher(comparison: &Comparison) -> Value {
    let mut benchmarks: Map<String, Value> = Map::new();
    let mut add = |benchmark: &str, measure: &str, metric: Value| {
        let of = benchmarks.entry(benchmark).or_insert_with(|| json!({}));
        of[measure] = metric;
    };
    for told in &comparison.metrics {
        let (measure, route) = told
            .metric
            .split_once(' ')
            .unwrap_or((&told.metric, "all requests"));
        if let Some(value) = told.change {
            add(route, measure, json!({ "value": value }));
        }
        if let Some(ratio) = told.ratio {
            let mut metric = json!({ "value": ratio });
            if let Some((low, high)) = told.interval {
                metric["lower_value"] = low.into();
                metric["upper_value"] = high.into();
            }
            add(
                &format!("{route}, times as good as the base"),
                measure,
                metric,
            );
        }
    }
    benchmarks.into()
}

/// Returns one figure of the change; the tool shows `extra` beside it.
fn entry(told: &Told) -> Option<Value> {
    let unit = match told.unit.key() {
        "" => "count",
        unit => unit,
    };
    let mut entry = json!({ "name": told.label, "unit": unit, "value": told.change? });
    if let (Some(ratio), Some((low, high))) = (told.ratio, told.interval) {
        entry["extra"] =
            format!("{ratio:.3} times as good as the base ({low:.3} to {high:.3})").into();
    }
    Some(entry)
}
