//! Locust, with a chapter's `locust/chapterN.py`, as one process.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use children::limits::allow_open_files;
use children::tool::{DriverError, Ended, Settings, Task};
use serde::Deserialize;

use engine::outcome::{GeneratorKind, Latency, Outcome};
use engine::traffic::Traffic;

const TOOL: &str = "Locust";
/// Prefix of a wrong body among the failures of Locust's scripts.
const WRONG: &str = "wrong answer: ";

/// Runs Locust with the users, think time and durations of `load`. The script knows the request and the right
/// answer.
///
/// # Errors
/// If Locust or its script is missing, cannot be run, or yields nothing. A missed threshold is not an error,
/// because the figures show it.
pub fn run(
    target: SocketAddr,
    load: &Traffic,
    settings: &Settings<'_>,
) -> Result<Outcome, DriverError> {
    let think = super::think(TOOL, load)?;
    if !load.keep_alive {
        let what = "its users keep their connections";
        return Err(DriverError::load(TOOL, what));
    }
    allow_open_files(u64::from(load.users) + 64)?;
    // One process cannot start users faster while it is busy with those who are there.
    let spawn_rate = load.users.min(500);
    let ramp = Duration::from_secs(u64::from(load.users.div_ceil(spawn_rate)));
    // Users come back evenly only after a think time.
    let warm_up = think + load.warm_up;
    // Locust takes whole seconds.
    let exact = ramp + warm_up + load.duration;
    let whole = Duration::from_secs(exact.as_secs() + u64::from(exact.subsec_nanos() > 0));
    // Python runs on one CPU at a time.
    let task = Task::new(TOOL, *settings, whole, load.duration, 1)?;
    let ended = task.run(&[], |command| {
        command
            // No __pycache__ in the reader's clone.
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .arg("-f")
            .arg(settings.script)
            .args(["--headless", "--only-summary", "--loglevel", "WARNING"])
            .args(["--host", &format!("http://{target}")])
            .args(["--users", &load.users.to_string()])
            .args(["--spawn-rate", &spawn_rate.to_string()])
            .args(["--run-time", &format!("{}s", whole.as_secs())])
            .arg("--summary")
            .arg(task.summary_path());
        for (name, value) in super::told(load, settings, think, warm_up) {
            command.arg(format!("--{name}")).arg(value.to_string());
        }
    })?;
    read(load.users, &ended)
}

/// The file that `locust/common.py` writes.
#[derive(Debug, Deserialize)]
struct Summary {
    version: String,
    seconds: f64,
    completed: u64,
    mean_ms: f64,
    min_ms: f64,
    max_ms: f64,
    quantiles: Vec<(f64, f64)>,
    errors: BTreeMap<String, u64>,
    per_second: Vec<u64>,
}

pub(super) fn read(users: u32, ended: &Ended) -> Result<Outcome, DriverError> {
    let summary: Summary =
        serde_json::from_str(&ended.summary).map_err(DriverError::summary(TOOL))?;
    let (wrong, errors): (BTreeMap<_, _>, BTreeMap<_, _>) = summary
        .errors
        .into_iter()
        .partition(|(cause, _)| cause.starts_with(WRONG));
    let first_wrong = wrong.keys().next();
    let locust = (GeneratorKind::Locust, summary.version);
    let outcome = Outcome {
        errors,
        wrong_answers: wrong.values().copied().fold(0, u64::saturating_add),
        first_wrong_answer: first_wrong.map(|cause| cause[WRONG.len()..].to_owned()),
        latency: Latency {
            mean_ms: summary.mean_ms,
            min_ms: summary.min_ms,
            max_ms: summary.max_ms,
            quantiles: summary.quantiles,
            lower_bound_from: None,
        },
        per_second: summary.per_second,
        ..super::outcome(ended, locust, users, summary.completed, summary.seconds)
    };
    super::checked(TOOL, outcome)
}
