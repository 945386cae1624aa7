//! Programs that are started: the drivers of k6 and Locust, against stand-ins that leave a recorded summary, fail, or
//! hang, and a server that does not come up. The tools themselves run in the tests marked `ignored`.
#![cfg(unix)]

mod real;
mod scripts;
#[allow(dead_code, reason = "the embedded generator's tests need more of it")]
#[path = "../../../../instruments/engine/tests/generator/server.rs"]
mod server;
mod servers;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use children::Interrupt;
use children::tool::{DriverError, Settings};
use course::bench::drivers::{k6, locust};
use course::bench::testing::write_script;
use course::measurement::load::Exchange;
use engine::outcome::{GeneratorKind, MISSED, Outcome};
use engine::traffic::{Arrivals, Spacing, Traffic};
use tempfile::TempDir;

/// Summary of k6 1.8.1, cut down to the metrics that are read.
const K6_SUMMARY: &str = include_str!("../k6-summaries/problem.json");
const LOCUST_SUMMARY: &str = include_str!("../locust-summaries/solution.json");
const NOWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9);

fn load() -> Traffic {
    Traffic {
        arrivals: Arrivals::Closed {
            think: Duration::from_millis(500),
        },
        warm_up: Duration::from_secs(1),
        duration: Duration::from_secs(5),
        ..Exchange::get("/read", "6").by(200)
    }
}

/// A folder with a stand-in for a tool and a script for it.
struct Fake {
    folder: TempDir,
    interrupt: Interrupt,
}

impl Fake {
    /// Makes a tool of a shell script. `$FOLDER` is the script's folder, and `$SUMMARY` is the file for the
    /// summary.
    fn new(body: &str, summary: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tool");
        let shown = folder.path().display();
        let script = format!(
            "#!/bin/sh\nFOLDER={shown}\n\
             if [ \"$1\" = version ]; then echo 'k6 v1.8.1 (go1.26.8, linux/amd64)'; exit; fi\n\
             echo \"$@\" >$FOLDER/arguments\n\
             while [ $# -gt 0 ]; do\n\
             case $1 in --summary|--summary-export) SUMMARY=$2;; esac\n\
             shift\ndone\n{body}\n"
        );
        write_script(&path, &script);
        fs::write(folder.path().join("summary.json"), summary).unwrap();
        fs::write(folder.path().join("script"), "").unwrap();
        Self {
            folder,
            interrupt: Interrupt::new(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, kind: GeneratorKind) -> Result<Outcome, DriverError> {
        self.drive(kind, "tool", "script", &load())
    }

    fn drive(
        &self,
        kind: GeneratorKind,
        program: &str,
        script: &str,
        load: &Traffic,
    ) -> Result<Outcome, DriverError> {
        let (program, script) = (self.path(program), self.path(script));
        drive(kind, NOWHERE, load, &program, &script, &self.interrupt)
    }

    #[track_caller]
    fn was_called_with(&self, parts: &[&str]) {
        let arguments = fs::read_to_string(self.path("arguments")).unwrap();
        for part in parts {
            assert!(arguments.contains(part), "{part} in {arguments}");
        }
    }
}

fn drive(
    kind: GeneratorKind,
    target: SocketAddr,
    load: &Traffic,
    program: &Path,
    script: &Path,
    interrupt: &Interrupt,
) -> Result<Outcome, DriverError> {
    let settings = Settings {
        program,
        script,
        cpus: &[],
        alone: None,
        interrupt,
    };
    match kind {
        GeneratorKind::K6 => k6::run(target, load, &settings),
        _ => locust::run(target, load, &settings),
    }
}

/// The workshop's folder.
fn workshop() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

const LEAVES_A_SUMMARY: &str = "cp $FOLDER/summary.json $SUMMARY; exit 99";

#[test]
fn k6s_summary_becomes_an_outcome() {
    let fake = Fake::new(LEAVES_A_SUMMARY, K6_SUMMARY);
    let outcome = fake.run(GeneratorKind::K6).unwrap();
    assert_eq!(outcome.generator.name, GeneratorKind::K6);
    assert_eq!(outcome.generator.version, "1.8.1");
    assert_eq!(outcome.generator.users, 200);
    assert_eq!(outcome.completed, 1813);
    assert!((outcome.requests_per_second - 362.6).abs() < 1e-9);
    assert!((outcome.latency.at(0.5).unwrap() - 51.468_806).abs() < 1e-9);
    assert!(outcome.latency.at(0.99) > outcome.latency.at(0.5));
    assert_eq!((outcome.error_count(), outcome.wrong_answers), (0, 0));
    assert_eq!(outcome.exit_code, Some(MISSED));
    fake.was_called_with(&[
        "-e HOST=http://127.0.0.1:9 ",
        "-e USERS=200 ",
        "-e THINK=0.5 ",
        "-e WARM_UP=1 ",
        "-e DURATION=5 ",
    ]);
}

#[test]
fn locusts_summary_becomes_an_outcome() {
    let fake = Fake::new(LEAVES_A_SUMMARY, LOCUST_SUMMARY);
    let outcome = fake.run(GeneratorKind::Locust).unwrap();
    assert_eq!(outcome.generator.name, GeneratorKind::Locust);
    assert_eq!(outcome.generator.version, "2.47.0");
    assert_eq!(outcome.completed, 2000);
    assert!((outcome.requests_per_second - 2000.0 / outcome.seconds).abs() < 1e-9);
    assert_eq!(outcome.latency.at(0.5), Some(52.0));
    assert_eq!(outcome.errors["status 500"], 2);
    assert_eq!(outcome.wrong_answers, 3);
    assert_eq!(outcome.first_wrong_answer.as_deref(), Some("7"));
    // One second to start 200 users, half a second until they come back evenly, and the load's six seconds.
    fake.was_called_with(&[
        "--users 200 ",
        "--run-time 8s ",
        "--think 0.5 ",
        "--warm-up 1.5 ",
    ]);
}

#[test]
fn cpu_time_is_measured_over_the_recorded_part() {
    // One idle second, then at least the five recorded seconds busy. `date` gives whole seconds, so the loop
    // may end up to one second early.
    let fake = Fake::new(
        "sleep 1; end=$(($(date +%s) + 6)); while [ $(date +%s) -lt $end ]; do :; done; \
         cp $FOLDER/summary.json $SUMMARY",
        K6_SUMMARY,
    );
    let outcome = fake.run(GeneratorKind::K6).unwrap();
    let share = outcome.generator.cpu_share.unwrap();
    assert!(share > 0.0 && share < 1.05, "{share}");
}

#[test]
fn what_cannot_be_run_is_said_with_the_remedy() {
    let fake = Fake::new(LEAVES_A_SUMMARY, K6_SUMMARY);
    let open = Traffic {
        arrivals: Arrivals::Open {
            per_second: 10.0,
            spacing: Spacing::Even,
        },
        ..load()
    };
    let reconnecting = Traffic {
        keep_alive: false,
        ..load()
    };
    let path = |name| fake.path(name).display().to_string();
    let (k6, locust) = (GeneratorKind::K6, GeneratorKind::Locust);
    let no_tool = format!("k6 is not at `{}`; install k6", path("k7"));
    let no_script = format!(
        "there is no Locust script at `{}`; run this in",
        path("gone")
    );
    let no_rate = "k6 cannot send this load: the workshop's scripts know closed loops only; use";
    let kept = "Locust cannot send this load: its users keep their connections; use the embedded";
    for (kind, program, script, load, expected) in [
        (k6, "k7", "script", load(), &*no_tool),
        (locust, "tool", "gone", load(), &no_script),
        (k6, "tool", "script", open, no_rate),
        (locust, "tool", "script", reconnecting, kept),
    ] {
        let words = fake.drive(kind, program, script, &load).unwrap_err();
        assert!(words.to_string().starts_with(expected), "{words}");
    }
    // A name without a path is looked for among the reader's programs.
    let name = Path::new("no-such-locust");
    let script = fake.path("script");
    let error = drive(locust, NOWHERE, &load(), name, &script, &fake.interrupt).unwrap_err();
    let words = error.to_string();
    assert!(words.starts_with("Locust is not at `no-such-locust`"));
}

#[test]
fn a_tool_that_fails_is_quoted() {
    let fake = Fake::new("echo first >&2; echo 'no such option' >&2; exit 3", "");
    let error = fake.run(GeneratorKind::Locust).unwrap_err().to_string();
    assert!(error.contains("exit status: 3"), "{error}");
    assert!(error.ends_with("first | no such option"), "{error}");
}

/// Writes its process number, then sleeps longer than any test.
const HANGS: &str = "echo $$ >$FOLDER/new; mv $FOLDER/new $FOLDER/pid; exec sleep 100";

#[test]
fn an_interrupt_ends_the_tool() {
    let fake = Fake::new(HANGS, "");
    let setter = fake.interrupt.clone();
    let pid = fake.path("pid");
    let waiter = std::thread::spawn(move || {
        let pid = process_in(&pid);
        setter.set();
        pid
    });
    let start = Instant::now();
    let error = fake.run(GeneratorKind::Locust).unwrap_err();
    assert!(matches!(error, DriverError::Interrupted), "{error}");
    assert!(start.elapsed() < Duration::from_secs(90));
    assert!(!is_alive(waiter.join().unwrap()));
}

/// Reads the number in a file that will be there soon.
fn process_in(file: &Path) -> u32 {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Ok(text) = fs::read_to_string(file) {
            return text.trim().parse().unwrap();
        }
        assert!(Instant::now() < deadline, "{} never came", file.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn is_alive(process: u32) -> bool {
    Command::new("sh")
        .args(["-c", &format!("kill -0 {process} 2>/dev/null && ! grep -q 'State:.Z' /proc/{process}/status 2>/dev/null")])
        .status()
        .unwrap()
        .success()
}
