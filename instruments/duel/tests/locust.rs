//! Locust as a master with workers, against a service of the test's own.
#![cfg(unix)]

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../../engine/tests/generator/server.rs"]
mod server;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use children::Interrupt;
use duel::locust::Workers;
use engine::traffic::{Request, Route, Traffic};
use terminal::testing::once_in_three;

use self::server::{Reaction, Server, answer, late};

/// Starts a server that answers any number of calls at once, after 50 ms each.
fn concurrent() -> Server {
    Server::start(|_, _| late(50, "6"))
}

/// Locust file, as `duel load --locust` writes it.
const LOAD: &str = r#"
from locust import FastHttpUser, task

class Reader(FastHttpUser):
    @task
    def request_1(self):
        with self.client.request("GET", "/a", name="GET /a", catch_response=True) as answer:
            if answer.status_code == 200:
                answer.success()
            else:
                answer.failure(f"status {answer.status_code}")
"#;

#[test]
#[ignore = "needs Locust on the PATH: pip install locust"]
fn workers_here_and_elsewhere_are_put_together() {
    let traffic = Traffic {
        warm_up: Duration::from_millis(200),
        duration: Duration::from_secs(1),
        ..Traffic::closed([Route::of(Request::get("/a"), 1.0)], 10)
    };
    let (program, interrupt) = (Path::new("locust"), Interrupt::new());
    let run = |server: &Server, own, others| {
        let workers = Workers {
            program,
            script: LOAD,
            host: &format!("http://{}", server.address),
            own,
            others,
            cpus: &[],
            interrupt: &interrupt,
        };
        duel::locust::run(&traffic, &workers)
    };
    let server = concurrent();
    // A worker that stands still for a second misses the whole load, and then the run is an error.
    once_in_three(|| {
        let outcome = match run(&server, 2, 0) {
            Ok(outcome) => outcome,
            Err(error) => return (false, error.to_string()),
        };
        let users = &outcome.users;
        assert!(users.completed <= users.right_in_all);
        let latency = &users.routes[0].latency;
        assert_eq!(latency.count(), users.completed);
        assert!(latency.at(0.0).is_none_or(|shortest| shortest.ms >= 49.0));
        assert!(users.errors.is_empty(), "{users:?}");
        assert!(outcome.generator.cpu_share.unwrap() > 0.0);
        // Ten users who wait 50 ms for each answer send at most 200 requests a second.
        let is_paced = users.requests_per_second <= 200.0 * 1.1;
        (users.completed > 0 && is_paced, format!("{users:?}"))
    });

    once_in_three(|| {
        // This is the command for another machine, which has no file of the load.
        let mut elsewhere = Command::new("locust")
            .args(["-f", "-", "--worker", "--master-host", "127.0.0.1"])
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let outcome = match run(&server, 1, 1) {
            Ok(outcome) => outcome,
            Err(error) => {
                let _ = elsewhere.kill();
                let _ = elsewhere.wait();
                return (false, error.to_string());
            }
        };
        assert!(elsewhere.wait().unwrap().success());
        (outcome.users.completed > 0, format!("{outcome:?}"))
    });

    let broken = Server::start(|_, _| Reaction::Answer(answer("500 Internal Server Error", "")));
    once_in_three(|| {
        let outcome = match run(&broken, 1, 0) {
            Ok(outcome) => outcome,
            Err(error) => return (false, error.to_string()),
        };
        assert_eq!(outcome.users.completed, 0);
        let has_failed = outcome.users.errors.contains_key("status 500");
        (has_failed, format!("{outcome:?}"))
    });
}
