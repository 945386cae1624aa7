//! Figures of two builds that were measured side by side: rounds as data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::figures;

/// Unit of a figure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A plain count.
    #[default]
    Count,
    /// Things per second.
    PerSecond,
    /// Time, printed in milliseconds.
    Seconds,
    /// Time in milliseconds.
    Ms,
    /// Memory, printed in MiB.
    Bytes,
}

impl Unit {
    /// Formats a value for people.
    pub fn text(self, value: f64) -> String {
        match self {
            Self::Count | Self::PerSecond => figures::count(value),
            Self::Ms => figures::milliseconds(value),
            Self::Seconds => figures::milliseconds(value * 1e3),
            Self::Bytes => figures::bytes(value),
        }
    }

    /// Returns its name in JSON; empty for a count.
    pub fn key(self) -> &'static str {
        match self {
            Self::Count => "",
            Self::PerSecond => "1/s",
            Self::Seconds => "s",
            Self::Ms => "ms",
            Self::Bytes => "bytes",
        }
    }

    // serde passes a reference.
    #[allow(clippy::trivially_copy_pass_by_ref)]
    /// Returns whether it is a count.
    pub fn is_count(&self) -> bool {
        *self == Self::Count
    }
}

/// A quantile of latencies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantile {
    /// Latency in milliseconds.
    pub ms: f64,
    /// Set if the latency is only known to be at least that.
    pub is_lower_bound: bool,
}

/// Figures of one server in a round, by [`Metric::key`]. Figures that could not be measured are missing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures(BTreeMap<String, (f64, bool)>);

impl Figures {
    /// Returns the figure of a metric, or its lower bound if only that is known.
    pub fn get(&self, key: &str) -> Option<f64> {
        self.0.get(key).map(|(value, _)| *value)
    }

    /// Returns the keys of all figures.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Returns whether only a lower bound of that metric is known.
    fn is_lower_bound(&self, key: &str) -> bool {
        matches!(self.0.get(key), Some((_, true)))
    }

    /// Adds the figure of a metric.
    pub fn insert(&mut self, key: String, value: f64) {
        self.0.insert(key, (value, false));
    }

    /// Adds a quantile of latencies.
    pub fn insert_quantile(&mut self, key: String, quantile: Quantile) {
        self.0.insert(key, (quantile.ms, quantile.is_lower_bound));
    }
}

/// Figures of one round of a comparison: of three fresh servers that are alive together and loaded in turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Triplet {
    /// The base.
    pub base: Figures,
    /// The change.
    pub change: Figures,
    /// The base once more, as a server of its own. It shows how far equal servers differ.
    pub again: Figures,
    /// `true` if both builds were made for this round alone. Rounds then differ in the layout of the code, which the
    /// base and the base again have in common.
    pub is_rebuilt: bool,
}

/// Returns whether only lower bounds of a metric are known of the base, and of the change, in some of `rounds`.
pub fn are_bounds(rounds: &[Triplet], key: &str) -> (bool, bool) {
    let (mut of_base, mut of_change) = (false, false);
    for round in rounds {
        of_base |= round.base.is_lower_bound(key) || round.again.is_lower_bound(key);
        of_change |= round.change.is_lower_bound(key);
    }
    (of_base, of_change)
}

/// One figure of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metric {
    /// Name in scripts and in `--metric`: `p99_ms`, or `p99_ms GET /search` of one route.
    pub key: String,
    /// Name for people.
    pub label: String,
    /// Unit of the figure.
    pub unit: Unit,
    /// `true` if larger is better, `false` if smaller is; `None` for a count of the service itself.
    pub larger_is_better: Option<bool>,
}

/// Key of the requests per second.
pub const REQUESTS_PER_SECOND: &str = "requests_per_second";
/// Key of the median latency of all routes.
pub const P50: &str = "p50_ms";
/// Key of the bystander's 99th percentile.
pub const BYSTANDER_P99: &str = "bystander_p99_ms";
/// Key of the CPU time that a request takes in the service.
pub const CPU_MS: &str = "cpu_ms_per_request";
/// Key of the most memory that the service held at once.
pub const PEAK_MEMORY: &str = "peak_memory_bytes";

/// Percentiles that are reported, with the beginnings of their keys.
pub const PERCENTILES: [(f64, &str); 3] = [(0.5, P50), (0.9, "p90_ms"), (0.99, "p99_ms")];

/// Number of answers that must lie beyond a percentile for it to be one.
const BEYOND: f64 = 10.0;

/// Returns the number of answers that a latency at `quantile` (0 to 1) needs: ten beyond it.
pub fn answers_for(quantile: f64) -> f64 {
    BEYOND / (1.0 - quantile)
}

impl Metric {
    /// Returns all metrics of a load with these routes.
    pub fn all(routes: &[&str], has_bystander: bool, counters: &[String]) -> Vec<Self> {
        let mut all = vec![Self {
            key: REQUESTS_PER_SECOND.to_owned(),
            label: "requests per second".to_owned(),
            unit: Unit::PerSecond,
            larger_is_better: Some(true),
        }];
        for (quantile, key) in PERCENTILES {
            let label = format!("latency, {}", percent(quantile));
            all.push(Self::cost(key, &label, Unit::Ms));
        }
        if routes.len() > 1 {
            for route in routes {
                for (quantile, key) in PERCENTILES {
                    let label = format!("{route}, {}", percent(quantile));
                    all.push(Self::cost(&route_key(key, route), &label, Unit::Ms));
                }
            }
        }
        if has_bystander {
            all.push(Self::cost(
                "bystander_p50_ms",
                "bystander, median",
                Unit::Ms,
            ));
            all.push(Self::cost(BYSTANDER_P99, "bystander, 99 %", Unit::Ms));
        }
        all.push(Self::cost(CPU_MS, "CPU time per request", Unit::Ms));
        all.push(Self::cost(PEAK_MEMORY, "peak memory", Unit::Bytes));
        for counter in counters {
            all.push(Self {
                key: counter.clone(),
                label: counter_label(counter),
                unit: Unit::Count,
                larger_is_better: None,
            });
        }
        all
    }

    /// Makes a metric of which less is better.
    fn cost(key: &str, label: &str, unit: Unit) -> Self {
        Self {
            key: key.to_owned(),
            label: label.to_owned(),
            unit,
            larger_is_better: Some(false),
        }
    }

    /// Returns the percentile that it is, if it is one.
    pub fn quantile(&self) -> Option<f64> {
        for (quantile, key) in PERCENTILES {
            if self.unit == Unit::Ms && self.key.contains(key) {
                return Some(quantile);
            }
        }
        None
    }
}

/// Returns the name of a percentile for people.
fn percent(quantile: f64) -> String {
    if quantile < 0.6 {
        "median".to_owned()
    } else {
        format!("{:.0} %", quantile * 100.0)
    }
}

/// Returns the key of a percentile of one route.
pub fn route_key(percentile: &str, route: &str) -> String {
    format!("{percentile} {route}")
}

/// Returns whether a counter only ever grows, by the convention for its name. Reports show the growth per request of
/// such a counter, and of any other the value after the load.
pub fn grows(counter: &str) -> bool {
    ["_total", "_count", "_sum"]
        .iter()
        .any(|end| counter.ends_with(end))
}

fn counter_label(counter: &str) -> String {
    if grows(counter) {
        format!("{counter} per request")
    } else {
        counter.to_owned()
    }
}
