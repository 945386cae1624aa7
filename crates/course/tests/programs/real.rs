//! Tests of the tools themselves, with chapter 1's scripts as a reader types them, against a service with the
//! fault and one without.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use children::Interrupt;
use engine::outcome::{GeneratorKind, Outcome};
use engine::traffic::Traffic;

use crate::server::{self, Reaction, Server, answer};
use crate::workshop;

const MISSED: Option<i32> = Some(99);
const KEPT: Option<i32> = Some(0);

/// Makes one call of 50 ms after the other, as under a lock held across it.
fn serial() -> Server {
    Server::start(|_, _| {
        std::thread::sleep(Duration::from_millis(50));
        Reaction::Answer(answer("200 OK", "6"))
    })
}

/// Makes any number of calls at once.
fn concurrent() -> Server {
    late("6")
}

/// Answers as fast as the solution, but wrongly.
fn wrong() -> Server {
    late("7")
}

fn late(body: &'static str) -> Server {
    Server::start(move |_, _| server::late(50, body))
}

/// Returns the tool that `cargo workshop setup` installed, or else the reader's own.
fn program(tool: &str) -> PathBuf {
    let installed = match tool {
        "locust" => workshop().join(".tools/venv/bin/locust"),
        tool => workshop().join(".tools/bin").join(tool),
    };
    if installed.is_file() {
        installed
    } else {
        tool.into()
    }
}

fn command(tool: &str) -> Command {
    let mut command = Command::new(program(tool));
    command
        .current_dir(workshop())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command
}

fn k6(server: &Server) -> Option<i32> {
    command("k6")
        .args(["run", "--quiet", "--no-usage-report"])
        .args(["-e", &format!("HOST=http://{}", server.address)])
        .args(["-e", "USERS=100", "-e", "THINK=0.5", "-e", "DURATION=4"])
        .arg("k6/chapter1.js")
        .status()
        .unwrap()
        .code()
}

fn locust(server: &Server) -> Command {
    let mut locust = command("locust");
    locust
        .args(["-f", "locust/chapter1.py", "--only-summary"])
        .args(["--host", &format!("http://{}", server.address)])
        .args(["-u", "100", "-r", "100", "-t", "7s"])
        .args(["--headless", "--think", "0.5"]);
    locust
}

#[test]
#[ignore = "needs k6: cargo workshop setup k6"]
fn k6_fails_on_the_fault_and_passes_on_the_cure() {
    judges_each(k6);
}

#[test]
#[ignore = "needs Locust: cargo workshop setup locust"]
fn locust_fails_on_the_fault_and_passes_on_the_cure() {
    judges_each(|server| locust(server).status().unwrap().code());
}

/// Checks the exit codes for all services at once: a generator waits more than it works.
fn judges_each(code: impl Fn(&Server) -> Option<i32> + Sync) {
    std::thread::scope(|scope| {
        let services = [(serial(), MISSED), (concurrent(), KEPT), (wrong(), MISSED)];
        let codes = services.map(|(server, expected)| {
            let code = &code;
            let ended = scope.spawn(move || best(expected, || code(&server)));
            (ended, expected)
        });
        for (code, expected) in codes {
            assert_eq!(code.join().unwrap(), expected);
        }
    });
}

/// Returns the tool's exit code. A machine that stands still for a moment makes the right service miss its
/// threshold, or lets a load end without an answer, so there are three attempts.
fn best(expected: Option<i32>, code: impl Fn() -> Option<i32>) -> Option<i32> {
    let mut ended = code();
    for _ in 1..3 {
        if ended != expected {
            ended = code();
        }
    }
    ended
}

#[test]
#[ignore = "needs Locust: cargo workshop setup locust"]
fn locusts_master_judges_what_two_workers_measured() {
    let code = |server: &Server| {
        let port = free_port();
        let workers: Vec<Child> = (0..2)
            .map(|_| {
                command("locust")
                    .args(["-f", "locust/chapter1.py", "--worker"])
                    .args(["--master-host", "127.0.0.1", "--master-port", &port])
                    .spawn()
                    .unwrap()
            })
            .collect();
        let code = locust(server)
            .args(["--master", "--expect-workers", "2"])
            .args(["--expect-workers-max-wait", "100"])
            .args(["--master-bind-host", "127.0.0.1"])
            .args(["--master-bind-port", &port])
            .status()
            .unwrap()
            .code();
        for mut worker in workers {
            assert!(worker.wait().unwrap().success());
        }
        code
    };
    for (server, expected) in [(serial(), MISSED), (concurrent(), KEPT), (wrong(), MISSED)] {
        assert_eq!(best(expected, || code(&server)), expected);
    }
}

#[test]
#[ignore = "needs k6 and Locust: cargo workshop setup k6 locust"]
fn the_drivers_read_what_the_tools_really_write() {
    let load = Traffic {
        users: 50,
        warm_up: Duration::from_secs(1),
        duration: Duration::from_secs(2),
        ..crate::load()
    };
    for (kind, tool, script) in [
        (GeneratorKind::K6, "k6", "k6/chapter1.js"),
        (GeneratorKind::Locust, "locust", "locust/chapter1.py"),
    ] {
        let script = workshop().join(script);
        let (program, interrupt) = (program(tool), Interrupt::new());
        // Takes three attempts at most, because the load is over soon on a machine that stands still.
        let outcome = |server: &dyn Fn() -> Server, is_enough: &dyn Fn(&Outcome) -> bool| {
            let mut few = Vec::new();
            while few.len() < 3 {
                let target = server().address;
                match crate::drive(kind, target, &load, &program, &script, &interrupt) {
                    Ok(outcome) if is_enough(&outcome) => return outcome,
                    other => few.push(other),
                }
            }
            panic!("{few:#?}");
        };
        let right = outcome(&concurrent, &|right| {
            let is_paced = right.requests_per_second <= 91.0 * 1.1;
            let is_measured = right.generator.cpu_share.is_some_and(|share| share > 0.0);
            right.completed > 0 && is_paced && is_measured
        });
        assert!(right.latency.min_ms >= 50.0, "{right:?}");
        assert_eq!((right.error_count(), right.wrong_answers), (0, 0));

        let bad = outcome(&wrong, &|bad| bad.wrong_answers > 0);
        assert_eq!((bad.completed, bad.error_count()), (0, 0), "{bad:?}");
        if kind == GeneratorKind::Locust {
            assert_eq!(bad.first_wrong_answer.as_deref(), Some("7"));
        }

        let breaks =
            || Server::start(|_, _| Reaction::Answer(answer("500 Internal Server Error", "6")));
        let broken = outcome(&breaks, &|broken| broken.error_count() > 0);
        let mut causes = broken.errors.keys();
        let all_by_status = causes.all(|cause| cause.starts_with("status"));
        assert!(broken.completed == 0 && all_by_status, "{broken:?}");
    }
}

fn free_port() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port().to_string()
}
