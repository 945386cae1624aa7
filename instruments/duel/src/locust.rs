//! Locust as a master with workers, on this machine and on others, for loads that one process cannot send.

use std::collections::BTreeMap;
use std::io;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use children::limits::allow_open_files;
use children::tool::{DriverError, Settings, Task};
use children::{Interrupt, Running, Starting, Tail};
use engine::load::{GroupOutcome, Latencies, RouteLatencies, TrafficOutcome};
use engine::outcome::{GeneratorFacts, GeneratorKind};
use engine::traffic::Arrivals;
use engine::traffic::Traffic;
use serde::Deserialize;

const TOOL: &str = "Locust";
/// Default port of a Locust master.
pub const PORT: u16 = 5557;
/// Python file that counts answers in each worker.
const RECORDER: &str = include_str!("locust/recorder.py");
/// Number of users that a worker can start in a second without falling behind.
const SPAWNED: u32 = 100;
/// Longest time that the master waits for workers of this machine.
const OWN_WITHIN: Duration = Duration::from_secs(60);
/// Longest time that the master waits for workers of other machines, where somebody types a command.
const OTHERS_WITHIN: Duration = Duration::from_secs(600);
/// Longest time that a run takes beside its load: the master looks for workers once a second, and waits for late ones.
const BESIDE: Duration = Duration::from_secs(15);

/// Locust processes that send a load, and the load as a Locust file.
#[derive(Debug, Clone, Copy)]
pub struct Workers<'a> {
    /// Locust's executable: a path, or a name to look for in `PATH`.
    pub program: &'a Path,
    /// The load as a Locust file: each route is a request of its name.
    pub script: &'a str,
    /// The service's `https://HOST:PORT`.
    pub host: &'a str,
    /// Number of workers that are started on this machine.
    pub own: u32,
    /// Number of workers on other machines, which the master waits for. If there are any, it listens at [`PORT`]
    /// of every address of this machine. Otherwise it listens at a free port of the loopback.
    pub others: u32,
    /// CPUs that the processes of this machine run on; empty for all CPUs. Linux only.
    pub cpus: &'a [usize],
    /// Ends the run early when set.
    pub interrupt: &'a Interrupt,
}

/// Summary that `recorder.py` writes.
#[derive(Debug, Deserialize)]
struct Summary {
    version: String,
    workers: Vec<Recorded>,
}

/// Figures of one worker.
#[derive(Debug, Deserialize)]
struct Recorded {
    seconds: f64,
    /// Number of right answers, including those outside the recorded span.
    right: u64,
    /// CPU time that the worker used, as a share of one CPU.
    used: f64,
    waited: Option<f64>,
    /// Number of answers by their latency, in milliseconds as text, for the name of each request.
    routes: BTreeMap<String, BTreeMap<String, u64>>,
    errors: BTreeMap<String, u64>,
}

/// Sends `traffic` to the service. The script compares only the status of an answer.
///
/// # Errors
///
/// Fails if Locust is missing, cannot send the load, cannot be run, or loses a worker.
pub fn run(traffic: &Traffic, workers: &Workers<'_>) -> Result<TrafficOutcome, DriverError> {
    sendable(traffic)?;
    allow_open_files(u64::from(traffic.users) + 64)?;
    let failed = DriverError::run::<io::Error>(TOOL);
    let folder = tempfile::Builder::new().prefix("workshop-").tempdir();
    let folder = folder.map_err(&failed)?;
    let (script, recorder) = (
        folder.path().join("load.py"),
        folder.path().join("recorder.py"),
    );
    std::fs::write(&script, workers.script).map_err(&failed)?;
    std::fs::write(&recorder, RECORDER).map_err(&failed)?;
    let (address, port, within) = if workers.others == 0 {
        ("127.0.0.1", free_port().map_err(&failed)?, OWN_WITHIN)
    } else {
        ("*", PORT, OTHERS_WITHIN)
    };
    let all = workers.own + workers.others;
    let rate = traffic.users.min(SPAWNED * all);
    let ramp = Duration::from_secs(u64::from(traffic.users.div_ceil(rate)));
    let settings = Settings {
        program: workers.program,
        script: &script,
        cpus: workers.cpus,
        alone: None,
        interrupt: workers.interrupt,
    };
    let whole = within + ramp + traffic.warm_up + traffic.duration + BESIDE;
    let task = Task::new(TOOL, settings, whole, traffic.duration, 1)?;
    let files = format!("{},{}", script.display(), recorder.display());
    let (mut own, mut said): (Vec<Running>, Vec<Tail>) = Default::default();
    for _ in 0..workers.own {
        let mut command = Command::new(workers.program);
        with_files(&mut command, &files);
        command.args(["--worker", "--master-host", "127.0.0.1", "--master-port"]);
        command.arg(port.to_string());
        let worker = Starting::of(&command)
            .on(workers.cpus)
            .stderr(Stdio::piped());
        let mut worker = worker.start().map_err(&failed)?;
        said.push(Tail::of(worker.stderr()));
        own.push(worker);
    }
    // If the master gives up waiting, only the workers' own standard error says why.
    let ended = task.run(&said, |command| {
        with_files(command, &files);
        command.args(["--master", "--headless", "--only-summary"]);
        for (option, value) in [
            ("--master-bind-host", address.to_owned()),
            ("--master-bind-port", port.to_string()),
            ("--expect-workers", all.to_string()),
            ("--expect-workers-max-wait", within.as_secs().to_string()),
            ("--host", workers.host.to_owned()),
            ("--users", traffic.users.to_string()),
            ("--spawn-rate", rate.to_string()),
            ("--warm-up", traffic.warm_up.as_secs_f64().to_string()),
            ("--seconds", traffic.duration.as_secs_f64().to_string()),
        ] {
            command.args([option, &value]);
        }
        command.arg("--summary").arg(task.summary_path());
    })?;
    let summary: Summary =
        serde_json::from_str(&ended.summary).map_err(DriverError::summary(TOOL))?;
    let counted = summary.workers.iter().filter(|one| one.seconds > 0.0);
    let there = counted.count();
    if there < all as usize {
        return Err(DriverError::Failed(format!(
            "{there} of {all} Locust workers reported; find out what became of the others"
        )));
    }
    outcome(traffic, summary)
}

/// Returns a port of the loopback that nobody listens on at this moment.
fn free_port() -> io::Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    Ok(listener.local_addr()?.port())
}

/// Makes Locust read these files, which are separated by a comma.
fn with_files(command: &mut Command, files: &str) {
    command
        // Python must not write `__pycache__` into the folder.
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .args(["-f", files, "--loglevel", "WARNING"]);
}

/// Checks that a Locust file can express the whole load.
///
/// # Errors
///
/// Fails with the name of the part that Locust cannot send.
pub fn sendable(traffic: &Traffic) -> Result<(), DriverError> {
    let fault = if matches!(traffic.arrivals, Arrivals::Open { .. }) {
        "it knows closed loops only, and no rate"
    } else if !traffic.keep_alive {
        "its users keep their connections"
    } else if traffic.bystander.is_some() {
        "it has no bystander here"
    } else {
        return Ok(());
    };
    Err(DriverError::load(TOOL, fault))
}

fn outcome(traffic: &Traffic, summary: Summary) -> Result<TrafficOutcome, DriverError> {
    let workers = summary.workers;
    let (mut used, mut waited) = (0.0_f64, Some(0.0_f64));
    let (mut right, mut per_second) = (0, 0.0);
    let mut errors: BTreeMap<String, u64> = BTreeMap::new();
    for worker in &workers {
        used = used.max(worker.used);
        // It is not known how busy the busiest worker was if one of them does not tell.
        waited = match (waited, worker.waited) {
            (Some(most), Some(waited)) => Some(most.max(waited)),
            _ => None,
        };
        right += worker.right;
        per_second += worker.count() as f64 / worker.seconds;
        for (cause, count) in &worker.errors {
            *errors.entry(cause.clone()).or_default() += count;
        }
    }
    let mut routes = Vec::new();
    for route in &*traffic.routes {
        let mut answers = Vec::new();
        for worker in &workers {
            if let Some(bars) = worker.routes.get(&route.name) {
                for (ms, count) in bars {
                    if let Ok(ms) = ms.parse() {
                        answers.push((ms, *count));
                    }
                }
            }
        }
        let latency = Latencies::of(answers).map_err(DriverError::summary(TOOL))?;
        routes.push(RouteLatencies {
            right_in_all: latency.count(),
            latency,
            service: None,
            pieces: None,
            last_answer_s: None,
        });
    }
    let completed = routes.iter().map(|route| route.latency.count()).sum();
    Ok(TrafficOutcome {
        generator: GeneratorFacts {
            name: GeneratorKind::Locust,
            version: summary.version,
            cpu_share: Some(used),
            waited_share: waited,
            users: traffic.users,
            open_loop: false,
            arrivals: None,
        },
        seconds: traffic.duration.as_secs_f64(),
        users: GroupOutcome {
            completed,
            right_in_all: right,
            requests_per_second: per_second,
            errors,
            wrong_answers: 0,
            first_wrong_answer: None,
            first_wrong_request: None,
            unfinished: 0,
            per_second: Vec::new(),
            routes,
            phases: Vec::new(),
        },
        bystander: None,
    })
}

impl Recorded {
    fn count(&self) -> u64 {
        let routes = self.routes.values();
        routes.map(|bars| bars.values().sum::<u64>()).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use engine::traffic::{Request, Route, Spacing};

    use super::*;

    #[test]
    fn what_workers_saw_is_put_together() {
        let routes = ["/a", "/b"].map(|path| Route::of(Request::get(path), 1.0));
        let traffic = Traffic {
            duration: Duration::from_secs(2),
            time_out: Duration::from_secs(30),
            ..Traffic::closed(routes, 4)
        };
        sendable(&traffic).expect("Locust can send it");
        let summary = r#"{"version": "2", "workers": [
            {"seconds": 2.0, "right": 5, "used": 0.5, "waited": null, "errors": {"status 500": 1},
             "routes": {"GET /a": {"1.25": 3, "8.5": 1}}},
            {"seconds": 4.0, "right": 9, "used": 0.7, "waited": 0.1, "errors": {"status 500": 2},
             "routes": {"GET /a": {"1.25": 4}, "GET /b": {"20": 4}}}]}"#;
        let summary = serde_json::from_str(summary).expect("a summary");
        let outcome = outcome(&traffic, summary).expect("figures");
        let users = &outcome.users;
        assert_eq!((users.completed, users.right_in_all), (12, 14));
        assert_eq!(users.errors["status 500"], 3);
        assert!((users.requests_per_second - 4.0).abs() < 1e-9);
        assert_eq!(users.routes[1].latency.count(), 4);
        let median = users.routes[0].latency.at(0.5).expect("answers").ms;
        assert!((median - 1.25).abs() < 0.01, "{median}");
        // One of the workers does not know how long it waited.
        assert_eq!(outcome.generator.cpu_share, Some(0.7));
        assert_eq!(outcome.generator.waited_share, None);
        let paced = Traffic {
            arrivals: Arrivals::Open {
                per_second: 5.0,
                spacing: Spacing::Poisson,
            },
            ..traffic
        };
        let said = sendable(&paced).unwrap_err().to_string();
        assert!(said.contains("closed loops only"), "{said}");
    }
}
