//! Grafana k6, with a chapter's `k6/chapterN.js`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use children::limits::allow_open_files;
use children::tool::{DriverError, Ended, Settings, Task};
use serde::Deserialize;

use engine::outcome::{GeneratorKind, Latency, Outcome};
use engine::traffic::Traffic;

const TOOL: &str = "k6";

/// Runs k6 with the users, think time and durations of `load`. The script knows the request and the right
/// answer. Latencies are k6's `http_req_duration`: without connecting.
///
/// # Errors
/// If k6 or its script is missing, cannot be run, or yields nothing. A missed threshold is not an error,
/// because the figures show it.
pub fn run(
    target: SocketAddr,
    load: &Traffic,
    settings: &Settings<'_>,
) -> Result<Outcome, DriverError> {
    let think = super::think(TOOL, load)?;
    // k6 raises its own limit, but only up to this process's limit.
    allow_open_files(u64::from(load.users) + 64)?;
    // k6/common.js computes the ramp in this way.
    let ramp = think.max(Duration::from_secs_f64(f64::from(load.users) / 2000.0));
    let whole = ramp + load.warm_up + load.duration;
    let task = Task::new(TOOL, *settings, whole, load.duration, usize::MAX)?;
    let version = version(settings)?;
    let ended = task.run(&[], |command| {
        command.args(["run", "--quiet", "--no-color", "--no-usage-report"]);
        command.arg("--summary-export").arg(task.summary_path());
        if !load.keep_alive {
            command.arg("--no-connection-reuse");
        }
        let mut tell = |name: &str, value: String| {
            command.arg("-e").arg(format!("{name}={value}"));
        };
        tell("HOST", format!("http://{target}"));
        tell("USERS", load.users.to_string());
        tell("DURATION", load.duration.as_secs_f64().to_string());
        for (name, value) in super::told(load, settings, think, load.warm_up) {
            tell(&name.to_uppercase().replace('-', "_"), value.to_string());
        }
        command.arg(settings.script);
    })?;
    read(&ended, version, load)
}

/// Reads the version from a line such as `k6 v1.8.1 (go1.26.8, linux/amd64)`.
fn version(settings: &Settings<'_>) -> Result<String, DriverError> {
    let output = Command::new(settings.program)
        .arg("version")
        .output()
        .map_err(DriverError::run(TOOL))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text
        .split_ascii_whitespace()
        .nth(1)
        .unwrap_or("unknown")
        .trim_start_matches('v')
        .to_owned())
}

/// The part of `--summary-export`'s file that is needed here.
#[derive(Debug, Deserialize)]
struct Summary {
    metrics: BTreeMap<String, Metric>,
}

/// A counter has `count`, and a trend has its statistics; both carry more.
#[derive(Debug, Deserialize)]
struct Metric {
    count: Option<u64>,
    #[serde(flatten)]
    values: BTreeMap<String, serde_json::Value>,
}

impl Summary {
    /// Returns a metric, or a clause that says what is missing.
    fn metric(&self, name: &str) -> Result<&Metric, String> {
        match self.metrics.get(name) {
            Some(metric) => Ok(metric),
            None => Err(format!("it has no metric `{name}`")),
        }
    }

    fn count(&self, name: &str) -> Result<u64, String> {
        match self.metric(name)?.count {
            Some(count) => Ok(count),
            None => Err(format!("`{name}` has no count")),
        }
    }

    fn latency(&self) -> Result<Latency, String> {
        let trend = self.metric("answer_latency")?;
        let mut quantiles = Vec::new();
        for (quantile, name) in QUANTILES {
            quantiles.push((quantile, trend.value(name)?));
        }
        Ok(Latency {
            mean_ms: trend.value("avg")?,
            min_ms: trend.value("min")?,
            max_ms: trend.value("max")?,
            quantiles,
            lower_bound_from: None,
        })
    }
}

impl Metric {
    /// Returns a statistic of the trend `answer_latency`.
    fn value(&self, name: &str) -> Result<f64, String> {
        match self.values.get(name).and_then(serde_json::Value::as_f64) {
            Some(value) => Ok(value),
            None => Err(format!("`answer_latency` has no {name}")),
        }
    }
}

const QUANTILES: [(f64, &str); 9] = [
    (0.0, "min"),
    (0.25, "p(25)"),
    (0.5, "med"),
    (0.75, "p(75)"),
    (0.9, "p(90)"),
    (0.95, "p(95)"),
    (0.99, "p(99)"),
    (0.999, "p(99.9)"),
    (1.0, "max"),
];

pub(super) fn read(ended: &Ended, version: String, load: &Traffic) -> Result<Outcome, DriverError> {
    let damaged = DriverError::summary::<String>(TOOL);
    let summary: Summary =
        serde_json::from_str(&ended.summary).map_err(DriverError::summary(TOOL))?;
    let completed = summary.count("right_answers").map_err(&damaged)?;
    let mut errors = BTreeMap::new();
    for (name, cause) in [
        ("failed_connection", "connection"),
        ("failed_time_out", "time_out"),
        ("failed_status", "status"),
    ] {
        let count = summary.count(name).map_err(&damaged)?;
        if count > 0 {
            errors.insert(cause.to_owned(), count);
        }
    }
    let latency = if completed == 0 {
        Latency::default()
    } else {
        summary.latency().map_err(&damaged)?
    };
    let (k6, seconds) = ((GeneratorKind::K6, version), load.duration.as_secs_f64());
    let outcome = Outcome {
        errors,
        wrong_answers: summary.count("wrong_answers").map_err(&damaged)?,
        latency,
        ..super::outcome(ended, k6, load.users, completed, seconds)
    };
    super::checked(TOOL, outcome)
}
