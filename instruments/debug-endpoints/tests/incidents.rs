//! Incidents of services that stall, that deadlock, and whose requests hang.
#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    feature = "cpu",
    feature = "log"
))]

mod common;

use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{io::Write, thread};

use axum::Router;
use axum::routing::get;
use common::ask;
use debug_endpoints::{DebugEndpoints, Incidents};
use serde_json::Value;
use tokio::runtime::Runtime;

/// Lock for the tests: a profile of a kind is taken once at a time in a process, and they share the log.
static ALONE: Mutex<()> = Mutex::new(());

/// Lines of the log.
static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Log;

impl log::Log for Log {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push(record.args().to_string());
    }

    fn flush(&self) {}
}

/// A service whose failing test does not wait for workers that are blocked for ever.
struct Service {
    runtime: Option<Runtime>,
    own: SocketAddr,
    admin: SocketAddr,
}

impl Service {
    fn start(incidents: Incidents, app: impl FnOnce(Router) -> Router) -> Self {
        let _ = log::set_logger(&Log);
        log::set_max_level(log::LevelFilter::Warn);
        let (runtime, own, admin) = common::service(
            || DebugEndpoints::new().record_incidents(incidents),
            |debug| app(Router::new()).layer(debug.layer()),
        );
        let runtime = Some(runtime);
        Self {
            runtime,
            own,
            admin,
        }
    }

    /// Sends a request without waiting for its answer; it goes on as long as the returned stream lives.
    fn send(&self, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.own).expect("it listens");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: shop\r\n\r\n").expect("sent");
        stream
    }

    /// Waits for an incident of this kind whose evidence was taken, and whose sentences contain `part`.
    fn incident(&self, kind: &str, part: &str) -> Value {
        self.incident_of(|| (), kind, part)
    }

    /// Does the same, and makes what it is about again and again, at most each ten seconds. On a busy machine the service
    /// may lack a CPU for the first, or the look at its threads come too late.
    fn incident_of(&self, make: impl Fn(), kind: &str, part: &str) -> Value {
        let end = Instant::now() + Duration::from_secs(150);
        let mut latest = None;
        loop {
            if latest.is_none_or(|at: Instant| at.elapsed() > Duration::from_secs(10)) {
                make();
                latest = Some(Instant::now());
            }
            let answer = ask(self.admin, "/debug/incidents?format=json");
            let all: Value = serde_json::from_slice(&answer.body).expect("JSON");
            let all = all.as_array().expect("an array");
            let says =
                |one: &&Value| one["kind"] == kind && one["sentences"].to_string().contains(part);
            if let Some(found) = all.iter().find(says) {
                return found.clone();
            }
            assert!(Instant::now() < end, "no {kind} with {part} in {all:?}");
            thread::sleep(Duration::from_millis(200));
        }
    }

    /// Waits for an incident of a worker that [`stalls`] holds.
    fn stall(&self) -> Value {
        let stall = || drop(ask(self.own, "/stall"));
        self.incident_of(stall, "late", "incidents::stalls")
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Returns the lines of the log.
fn log_text() -> String {
    let lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    lines.join("\n")
}

/// Asks so many times, sixteen at once.
fn ask_often(service: SocketAddr, path: &str, times: usize) {
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                for _ in 0..times / 16 {
                    ask(service, path);
                }
            });
        }
    });
}

/// Blocks its worker, as a call to a slow disk does. A busy machine takes its time to look.
async fn stalls() -> &'static str {
    thread::sleep(Duration::from_secs(3));
    "sorry"
}

#[test]
fn a_stall_is_recorded_while_it_lasts_with_its_line() {
    let _alone = ALONE.lock();
    let service = Service::start(Incidents::new(), |app| app.route("/stall", get(stalls)));
    let incident = service.stall();
    assert!(
        incident["sentences"]
            .to_string()
            .contains("did not yield for"),
        "{incident}"
    );
    let stacks = incident["stacks"].to_string();
    assert!(
        stacks.contains("blocked in") && stacks.contains("incidents::stalls"),
        "{incident}"
    );
    let log = log_text();
    assert!(
        log.contains("incident (late)") && log.contains("incidents::stalls"),
        "{log}"
    );
    // A build without debug information has no lines.
    if option_env!("CARGO_PROFILE_TEST_DEBUG") != Some("0") {
        assert!(log.contains("tests/incidents.rs:"), "{log}");
    }
    let metrics = ask(service.admin, "/metrics").text();
    assert!(
        !metrics.contains("process_incidents_total{kind=\"late\"} 0\n"),
        "{metrics}"
    );
    let text = ask(service.admin, "/debug/incidents").text();
    assert!(
        text.contains("late, 2") && text.contains("incidents::stalls"),
        "{text}"
    );
}

#[test]
fn a_look_sees_requests_while_the_evidence_of_an_incident_is_taken() {
    let _alone = ALONE.lock();
    let service = Service::start(Incidents::new(), |app| {
        app.route("/stall", get(stalls))
            .route("/hang", get(std::future::pending::<()>))
    });
    let _hang = service.send("/hang");
    let mut requests = Vec::new();
    // It is listed before its evidence is complete.
    let end = Instant::now() + Duration::from_secs(100);
    for look in 0_u32.. {
        // The machine may have had no CPU for the one before.
        if look.is_multiple_of(500) {
            requests.push(service.send("/stall"));
        }
        let incidents = ask(service.admin, "/debug/incidents?format=json").text();
        if incidents.trim() != "[]" {
            break;
        }
        assert!(Instant::now() < end, "no incident");
        thread::sleep(Duration::from_millis(20));
    }
    let look = ask(service.admin, "/debug/look?seconds=1&format=json").text();
    let look: Value = serde_json::from_str(&look).expect("JSON");
    let not_seen = look["not_seen"].to_string();
    assert!(!not_seen.contains("await profile"), "{look}");
    assert!(look["in_flight"].is_number(), "requests were seen: {look}");
}

#[test]
fn an_incident_during_a_look_has_its_stacks_and_waits() {
    let _alone = ALONE.lock();
    let service = Service::start(Incidents::new(), |app| {
        app.route("/stall", get(stalls))
            .route("/hang", get(std::future::pending::<()>))
    });
    let _hang = service.send("/hang");
    let admin = service.admin;
    let look = thread::spawn(move || ask(admin, "/debug/look?seconds=8&format=json").text());
    thread::sleep(Duration::from_millis(500));
    let incident = service.stall();
    let sentences = incident["sentences"].to_string();
    assert!(!sentences.contains("is being taken"), "{incident}");
    let stacks = incident["stacks"].to_string();
    assert!(stacks.contains("incidents::stalls"), "{incident}");
    assert!(
        incident["waits"].to_string().contains("/hang"),
        "{incident}"
    );
    let look = look.join().expect("an answer");
    let look: Value = serde_json::from_str(&look).expect("JSON");
    let not_seen = look["not_seen"].to_string();
    for part in ["await profile", "threads: "] {
        assert!(!not_seen.contains(part), "{look}");
    }
}

static ACCOUNT: Mutex<u64> = Mutex::new(100);

/// Waits for a lock that somebody holds who waits for this.
async fn deadlocks() -> &'static str {
    let _account = ACCOUNT.lock();
    "at last"
}

#[test]
fn a_deadlock_is_one_incident_that_goes_on() {
    let _alone = ALONE.lock();
    // An incident is looked at once, and a busy machine may leave that look too few moments.
    common::once_in_three(|| {
        let service = Service::start(Incidents::new(), |app| {
            app.route("/deadlock", get(deadlocks))
        });
        let account = ACCOUNT.lock();
        let _request = service.send("/deadlock");
        let incident = service.incident("late", "incidents::deadlocks");
        assert_eq!(incident["ongoing"], true, "{incident}");
        assert!(
            log_text().contains("incidents::deadlocks"),
            "{}",
            log_text()
        );
        // The other tests share the process.
        drop(account);
        let says = incident["sentences"].to_string();
        (says.contains("Probable deadlock"), incident)
    });
}

#[test]
fn a_p99_over_the_limit_is_recorded_with_the_limit() {
    async fn slow() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let _alone = ALONE.lock();
    let incidents = Incidents::new().p99_limit(Duration::from_millis(5));
    let service = Service::start(incidents, |app| app.route("/slow", get(slow)));
    // One of sixteen is timed, and a hundred are judged.
    let load = || ask_often(service.own, "/slow", 2_000);
    let incident = service.incident_of(load, "latency", "GET /slow");
    let says = incident["sentences"][0].as_str().expect("a sentence");
    assert!(
        says.starts_with("The p99 of GET /slow was ") && says.ends_with("its limit is 5.0 ms."),
        "{incident}"
    );
}

#[test]
fn requests_that_hang_are_recorded_with_what_they_wait_for() {
    static HOLDS: AtomicBool = AtomicBool::new(false);
    static LOCK: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    async fn waits() {
        let _guard = LOCK.lock().await;
        if HOLDS.load(Relaxed) {
            std::future::pending::<()>().await;
        }
    }
    let _alone = ALONE.lock();
    let incidents = Incidents::new()
        // So long that requests that do not hang stay below it, also on a busy machine.
        .p99_limit(Duration::from_secs(2))
        .without_stacks();
    let service = Service::start(incidents, |app| app.route("/wait", get(waits)));
    ask_often(service.own, "/wait", 2_000);
    HOLDS.store(true, Relaxed);
    let _hang: Vec<_> = (0..160).map(|_| service.send("/wait")).collect();
    let incident = service.incident("latency", "of the requests in flight were in");
    let says = incident["sentences"][0].as_str().expect("a sentence");
    assert!(says.contains("longer than 2000 ms"), "{incident}");
    assert!(
        incident["waits"].to_string().contains("Mutex"),
        "{incident}"
    );
    assert!(
        incident["stacks"].as_array().expect("an array").is_empty(),
        "{incident}"
    );
}

#[test]
fn nothing_is_recorded_unless_the_service_asks_for_it() {
    let (_runtime, _, admin) = common::service(DebugEndpoints::new, |_| Router::new());
    let answer = ask(admin, "/debug/incidents");
    assert_eq!(answer.status, 404);
    assert!(
        answer.text().contains("record_incidents"),
        "{}",
        answer.text()
    );
    assert!(!ask(admin, "/metrics").text().contains("process_incidents"));
}

#[test]
fn a_service_without_an_incident_says_since_when() {
    let _alone = ALONE.lock();
    let service = Service::start(Incidents::new(), |app| app);
    let text = ask(service.admin, "/debug/incidents").text();
    assert!(text.starts_with("No incident since 2"), "{text}");
    let json = ask(service.admin, "/debug/incidents?format=json").text();
    assert_eq!(json.trim(), "[]");
    assert_eq!(
        ask(service.admin, "/debug/incidents?format=svg").status,
        400
    );
}
