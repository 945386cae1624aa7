//! The drivers of k6 and Locust, against stand-ins that leave a recorded summary, fail, or hang.
//! The tools themselves run in the tests marked `ignored`.
#![cfg(unix)]

mod real;
mod scripts;
#[allow(dead_code, reason = "the embedded generator's tests need more of it")]
#[path = "../../../loadgen/tests/generator/server.rs"]
mod server;

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use bench::drivers::{DriverError, Settings, k6, locust};
use loadgen::interrupt::Interrupt;
use measurement::load::{Arrivals, Exchange, Load};
use measurement::outcome::{GeneratorKind, MISSED, Outcome};
use tempfile::TempDir;

/// What k6 1.8.1 wrote, cut down to the metrics that are read.
const K6_SUMMARY: &str = include_str!("k6-summary.json");
const LOCUST_SUMMARY: &str = include_str!("locust-summary.json");
const NOWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9);

fn load() -> Load {
    Load {
        arrivals: Arrivals::Closed {
            think: Duration::from_millis(500),
        },
        warm_up: Duration::from_secs(1),
        duration: Duration::from_secs(5),
        ..Load::closed(Exchange::get("/read", "6"), 200)
    }
}

/// A folder with a stand-in for a tool and a script for it.
struct Fake {
    folder: TempDir,
    interrupt: Interrupt,
}

impl Fake {
    /// A shell script. `$FOLDER` is where it lies; `$SUMMARY` is where the summary should go.
    fn new(body: &str, summary: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tool");
        let shown = folder.path().display();
        fs::write(
            &path,
            format!(
                "#!/bin/sh\nFOLDER={shown}\n\
                 if [ \"$1\" = version ]; then echo 'k6 v1.8.1 (go1.26.8, linux/amd64)'; exit; fi\n\
                 echo \"$@\" >$FOLDER/arguments\n\
                 while [ $# -gt 0 ]; do\n\
                 case $1 in --summary|--summary-export) SUMMARY=$2;; esac\n\
                 shift\ndone\n{body}\n"
            ),
        )
        .unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
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
        run_tool(
            kind,
            &self.path("tool"),
            &self.path("script"),
            &self.interrupt,
        )
    }

    fn arguments(&self) -> String {
        fs::read_to_string(self.path("arguments")).unwrap()
    }
}

fn run_tool(
    kind: GeneratorKind,
    program: &Path,
    script: &Path,
    interrupt: &Interrupt,
) -> Result<Outcome, DriverError> {
    drive(kind, NOWHERE, &load(), program, script, interrupt)
}

fn drive(
    kind: GeneratorKind,
    target: SocketAddr,
    load: &Load,
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
    let arguments = fake.arguments();
    for part in [
        "-e HOST=http://127.0.0.1:9 ",
        "-e USERS=200 ",
        "-e THINK=0.5 ",
        "-e WARM_UP=1 ",
        "-e DURATION=5 ",
    ] {
        assert!(arguments.contains(part), "{part} in {arguments}");
    }
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
    let arguments = fake.arguments();
    // A second to start 200 users, half a second until they come back evenly, and the load's six.
    for part in [
        "--users 200 ",
        "--run-time 8s ",
        "--think 0.5 ",
        "--warm-up 1.5 ",
    ] {
        assert!(arguments.contains(part), "{part} in {arguments}");
    }
}

#[test]
fn cpu_time_is_measured_over_the_recorded_part() {
    // A second idle, then at least the five that are recorded busy: `date` tells whole seconds, so
    // that the loop ends up to one before its time.
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
fn what_is_missing_is_said_with_the_remedy() {
    let fake = Fake::new(LEAVES_A_SUMMARY, K6_SUMMARY);
    let interrupt = Interrupt::new();
    let missing = fake.path("k7");
    let error = run_tool(
        GeneratorKind::K6,
        &missing,
        &fake.path("script"),
        &interrupt,
    )
    .unwrap_err();
    assert!(matches!(error, DriverError::Missing { .. }));
    assert_eq!(
        error.to_string(),
        format!(
            "k6 is not at `{}`; run `cargo workshop setup` to install it",
            missing.display()
        )
    );
    let name = Path::new("no-such-locust");
    let error = run_tool(
        GeneratorKind::Locust,
        name,
        &fake.path("script"),
        &interrupt,
    )
    .unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("Locust is not at `no-such-locust`")
    );
    let error = run_tool(
        GeneratorKind::Locust,
        &fake.path("tool"),
        &fake.path("gone"),
        &interrupt,
    )
    .unwrap_err();
    assert!(matches!(error, DriverError::NoScript { .. }), "{error}");
}

#[test]
fn a_load_that_the_scripts_cannot_send_is_refused() {
    let fake = Fake::new(LEAVES_A_SUMMARY, K6_SUMMARY);
    let settings = Settings {
        program: &fake.path("tool"),
        script: &fake.path("script"),
        cpus: &[],
        alone: None,
        interrupt: &fake.interrupt,
    };
    let open = Load {
        arrivals: Arrivals::Open { per_second: 10.0 },
        ..load()
    };
    let error = k6::run(NOWHERE, &open, &settings).unwrap_err().to_string();
    assert!(error.starts_with("k6 cannot send this load"), "{error}");
    let reconnecting = Load {
        keep_alive: false,
        ..load()
    };
    let error = locust::run(NOWHERE, &reconnecting, &settings)
        .unwrap_err()
        .to_string();
    assert!(error.ends_with("use the embedded generator"), "{error}");
}

#[test]
fn a_tool_that_fails_is_quoted() {
    let fake = Fake::new("echo first >&2; echo 'no such option' >&2; exit 3", "");
    let error = fake.run(GeneratorKind::Locust).unwrap_err().to_string();
    assert!(error.contains("exit status: 3"), "{error}");
    assert!(error.ends_with("first | no such option"), "{error}");
}

#[test]
fn a_damaged_summary_is_said_so() {
    for damaged in ["{", "{\"metrics\": {}}"] {
        let fake = Fake::new(LEAVES_A_SUMMARY, damaged);
        let error = fake.run(GeneratorKind::K6).unwrap_err();
        assert!(matches!(error, DriverError::Summary { .. }), "{error}");
    }
}

/// Tells its process number, then sleeps longer than any test.
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
    assert!(start.elapsed() < Duration::from_secs(20));
    assert!(!is_alive(waiter.join().unwrap()));
}

/// Not a test of its own: what the next one starts and kills.
#[test]
fn helper_that_runs_a_tool_for_ever() {
    let Some(folder) = std::env::var_os("HELPER_FOLDER") else {
        return;
    };
    let folder = Path::new(&folder);
    let _ = run_tool(
        GeneratorKind::Locust,
        &folder.join("tool"),
        &folder.join("script"),
        &Interrupt::new(),
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_tool_does_not_outlive_us_even_if_we_are_killed() {
    let fake = Fake::new(HANGS, "");
    let mut helper = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "helper_that_runs_a_tool_for_ever"])
        .env("HELPER_FOLDER", fake.folder.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let tool = process_in(&fake.path("pid"));
    assert!(is_alive(tool));
    helper.kill().unwrap();
    helper.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while is_alive(tool) {
        assert!(Instant::now() < deadline, "process {tool} was left behind");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The number in a file that will be there soon.
fn process_in(file: &Path) -> u32 {
    let deadline = Instant::now() + Duration::from_secs(20);
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
