//! The generators that are compared, behind one question: how did it go?

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bench::drivers::{self, k6, locust};
use loadgen::interrupt::Interrupt;
use loadgen::processors;
use measurement::load::{Arrivals, Exchange, Load};
use measurement::outcome::GeneratorFacts;
use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate, System};

use crate::Outcome;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contestant {
    Embedded,
    Wrk,
    Oha,
    K6,
    Locust,
}

pub(crate) struct Result {
    pub(crate) version: String,
    pub(crate) per_second: f64,
    pub(crate) median_ms: Option<f64>,
    pub(crate) p99_ms: Option<f64>,
    /// Of one processor.
    pub(crate) cpu_share: Option<f64>,
    /// Ready to run, but its processor was busy with something else.
    pub(crate) waited_share: Option<f64>,
    pub(crate) is_bound: bool,
    pub(crate) faults: u64,
}

pub(crate) fn load(users: u32, think: Duration, warm_up: Duration, duration: Duration) -> Load {
    Load {
        arrivals: Arrivals::Closed { think },
        warm_up,
        duration,
        ..Load::closed(Exchange::get("/read", "6"), users)
    }
}

impl Contestant {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Wrk => "wrk",
            Self::Oha => "oha",
            Self::K6 => "k6",
            Self::Locust => "Locust",
        }
    }

    fn program(self) -> PathBuf {
        let name = self.name().to_lowercase();
        std::env::var_os(name.to_uppercase()).map_or_else(|| name.into(), PathBuf::from)
    }

    pub(crate) fn run(
        self,
        target: SocketAddr,
        load: &Load,
        processors: &[usize],
    ) -> Outcome<Result> {
        let interrupt = Interrupt::new();
        let program = self.program();
        let settings = |script: &'static str| drivers::Settings {
            program: &program,
            script: Path::new(script),
            processors,
            alone: None,
            interrupt: &interrupt,
        };
        let outcome = match self {
            Self::Embedded => {
                let settings = loadgen::Settings {
                    processors,
                    interrupt: &interrupt,
                    progress: None,
                };
                loadgen::run(target, load, &settings)?
            }
            Self::K6 => k6::run(target, load, &settings("k6/chapter1.js"))?,
            Self::Locust => locust::run(target, load, &settings("locust/chapter1.py"))?,
            Self::Wrk => return wrk(&program, target, load, processors),
            Self::Oha => return oha(&program, target, load, processors),
        };
        Ok(Result {
            per_second: outcome.requests_per_second,
            median_ms: outcome.latency.at(0.5),
            p99_ms: outcome.latency.at(0.99),
            cpu_share: outcome.generator.cpu_share,
            waited_share: outcome.generator.waited_share,
            is_bound: outcome.generator.is_bound(),
            faults: outcome.error_count() + outcome.wrong_answers,
            version: outcome.generator.version,
        })
    }
}

fn wrk(program: &Path, target: SocketAddr, load: &Load, processors: &[usize]) -> Outcome<Result> {
    let (text, cpu_share) = run_pinned(
        Command::new(program)
            .args(["--latency", "-t1", &format!("-c{}", load.users)])
            .arg(format!("-d{}", load.duration.as_secs()))
            .arg(format!("http://{target}{}", load.exchange.path)),
        processors,
    )?;
    let after = |label: &str| {
        let rest = text
            .lines()
            .find_map(|line| line.trim().strip_prefix(label))?;
        Some(rest.trim().to_owned())
    };
    let milliseconds = |text: String| {
        let digits = text.trim_end_matches(char::is_alphabetic);
        let unit = match &text[digits.len()..] {
            "us" => 1e-3,
            "ms" => 1.0,
            _ => 1e3,
        };
        Some(digits.parse::<f64>().ok()? * unit)
    };
    Ok(Result {
        version: "4.1.0".to_owned(),
        per_second: after("Requests/sec:").ok_or("wrk told no rate")?.parse()?,
        median_ms: after("50%").and_then(milliseconds),
        p99_ms: after("99%").and_then(milliseconds),
        cpu_share,
        waited_share: None,
        is_bound: cpu_share.is_some_and(|share| share > GeneratorFacts::BOUND),
        faults: 0,
    })
}

fn oha(program: &Path, target: SocketAddr, load: &Load, processors: &[usize]) -> Outcome<Result> {
    let (text, cpu_share) = run_pinned(
        Command::new(program)
            .args(["--no-tui", "--output-format", "json", "-w"])
            .args(["-c", &load.users.to_string()])
            .arg("-z")
            .arg(format!("{}s", load.duration.as_secs()))
            .arg(format!("http://{target}{}", load.exchange.path)),
        processors,
    )?;
    let json: serde_json::Value = serde_json::from_str(&text)?;
    let number = |path: &str| json.pointer(path).and_then(serde_json::Value::as_f64);
    Ok(Result {
        version: "1.16.0".to_owned(),
        per_second: number("/summary/requestsPerSec").ok_or("oha told no rate")?,
        median_ms: number("/latencyPercentiles/p50").map(|seconds| seconds * 1e3),
        p99_ms: number("/latencyPercentiles/p99").map(|seconds| seconds * 1e3),
        cpu_share,
        waited_share: None,
        is_bound: cpu_share.is_some_and(|share| share > GeneratorFacts::BOUND),
        faults: 0,
    })
}

/// Standard output of `command` on `processors`, and the share of one processor that it used.
fn run_pinned(command: &mut Command, processors: &[usize]) -> Outcome<(String, Option<f64>)> {
    std::thread::scope(|scope| {
        let work = move || -> std::result::Result<_, String> {
            processors::pin_current_thread(processors).map_err(|error| error.to_string())?;
            let mut child = command
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .map_err(|error| error.to_string())?;
            let start = Instant::now();
            let cpu_share = watch(&mut child, start);
            let output = child
                .wait_with_output()
                .map_err(|error| error.to_string())?;
            Ok((
                String::from_utf8_lossy(&output.stdout).into_owned(),
                cpu_share,
            ))
        };
        scope
            .spawn(work)
            .join()
            .map_err(|_| "a thread panicked")?
            .map_err(Into::into)
    })
}

fn watch(child: &mut std::process::Child, start: Instant) -> Option<f64> {
    let mut system = System::new().ok()?;
    let pid = Pid::from_u32(child.id());
    let mut share = None;
    while let Ok(None) = child.try_wait() {
        system.refresh_processes_specifics(
            ProcessesToUpdate::Some(&[pid]),
            false,
            ProcessRefreshKind::nothing().with_cpu().without_tasks(),
        );
        if let Some(process) = system.process(pid) {
            let used = process.accumulated_cpu_time() as f64 / 1000.0;
            share = Some(used / start.elapsed().as_secs_f64());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    share
}
