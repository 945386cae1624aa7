//! Other programs that do the same work, beside the solution in the same run.

use serde::Serialize;

use crate::analysis::finding::median_metric;
use crate::measurement::{
    claim::{LoadMetric, SOLUTION},
    record::{Purpose, Record, Round},
};

/// One program's medians over its rounds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Baseline {
    /// Name of the program; the solution is the first one.
    pub service: String,
    /// Right requests per second.
    pub requests_per_second: Option<f64>,
    /// Requests per second as a share of the solution's.
    pub of_the_solutions: Option<f64>,
    /// Median latency in ms.
    pub p50_ms: Option<f64>,
    /// 99th percentile of the latency in ms.
    pub p99_ms: Option<f64>,
}

impl Baseline {
    /// Returns a name for a figure of its own: the first word, in lower case.
    pub fn key(&self) -> String {
        let end = self.service.find(|c: char| !c.is_ascii_alphanumeric());
        self.service[..end.unwrap_or(self.service.len())].to_lowercase()
    }
}

/// Returns every program that was measured, the solution first; empty if none was.
pub fn baselines(record: &Record) -> Vec<Baseline> {
    let rounds: Vec<&Round> = record.rounds_for(Purpose::Baseline).collect();
    let mut services: Vec<&str> = Vec::new();
    for round in &rounds {
        if !services.contains(&round.variant.as_str()) {
            services.push(&round.variant);
        }
    }
    services.sort_by_key(|service| *service != SOLUTION);
    let own = median_metric(LoadMetric::RequestsPerSecond, &rounds, SOLUTION);
    let mut baselines = Vec::new();
    for service in services {
        let rate = median_metric(LoadMetric::RequestsPerSecond, &rounds, service);
        baselines.push(Baseline {
            service: service.to_owned(),
            requests_per_second: rate,
            of_the_solutions: match (rate, own) {
                (Some(theirs), Some(own)) => Some(theirs / own),
                _ => None,
            },
            p50_ms: median_metric(LoadMetric::P50Ms, &rounds, service),
            p99_ms: median_metric(LoadMetric::P99Ms, &rounds, service),
        });
    }
    baselines
}
