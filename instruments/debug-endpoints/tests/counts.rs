//! Counts of waits, in the metrics of a service.

mod common;

use std::collections::HashMap;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::get;
use common::{ask, service};
use debug_endpoints::DebugEndpoints;
use tokio::sync::{Mutex, Semaphore};

/// Permits of the pool, and requests that want one at a time.
const PERMITS: usize = 2;
const USERS: usize = 10;

static POOL: Semaphore = Semaphore::const_new(PERMITS);

async fn report() -> &'static str {
    let permit = POOL.acquire().await;
    // For so long that a user is back before its turn, also on a busy machine.
    tokio::time::sleep(Duration::from_millis(200)).await;
    drop(permit);
    "rows"
}

/// Returns the value of the metric with this name and these labels.
fn value(metrics: &str, name: &str) -> f64 {
    let line = metrics.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|value| value.trim().parse().ok())
        .unwrap_or_default()
}

fn seconds(metrics: &str, wait: &str) -> f64 {
    let labels = format!("{{route=\"GET /report\",wait=\"{wait}\"}}");
    value(metrics, &format!("route_wait_seconds_total{labels}"))
}

/// Asks for the metrics until they fulfill a condition.
fn wait_for(admin: SocketAddr, is_there: impl Fn(&str) -> bool) -> String {
    let end = Instant::now() + Duration::from_secs(100);
    loop {
        let metrics = ask(admin, "/metrics").text();
        if is_there(&metrics) {
            return metrics;
        }
        assert!(Instant::now() < end, "{metrics}");
        thread::sleep(Duration::from_millis(300));
    }
}

/// Sends requests, each connection one after the other, and checks the answers, until the flag falls.
fn load(own: SocketAddr, running: &AtomicBool) {
    while running.load(Relaxed) {
        let answer = ask(own, "/report");
        assert_eq!((answer.status, answer.text().as_str()), (200, "rows"));
    }
}

/// Ends the load when it is dropped.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(false, Relaxed);
    }
}

/// Ten users share two permits, so eight of ten requests wait for one at any time. Profiles and a look are taken meanwhile.
#[test]
fn a_pool_that_is_too_small_has_its_share_of_the_seconds_beside_other_instruments() {
    let (_runtime, own, admin) = service(
        || DebugEndpoints::new().count_waits(),
        |debug| {
            let routes = Router::new().route("/report", get(report));
            routes.layer(debug.layer())
        },
    );
    let running = AtomicBool::new(true);
    let metrics = thread::scope(|scope| {
        let users: Vec<_> = (0..USERS)
            .map(|_| scope.spawn(|| load(own, &running)))
            .collect();
        // A test that fails ends the load, too.
        let _stop = Stop(&running);
        for path in ["/debug/await?seconds=2", "/debug/look?seconds=2"] {
            let answer = ask(admin, path);
            assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        }
        let metrics = wait_for(admin, |metrics| {
            value(metrics, "route_wait_samples_total") >= 150.0
                && seconds(metrics, "limit") > 0.0
                && value(metrics, "request_poll_delay_seconds_count") > 0.0
        });
        running.store(false, Relaxed);
        for user in users {
            user.join().expect("its answers are right");
        }
        metrics
    });
    let (pool, timer) = (seconds(&metrics, "limit"), seconds(&metrics, "timer"));
    // Requests that wait, or sleep: of ten there are eight and two. A hundred samples have a standard deviation of four
    // points, and five of them are a failure in a million.
    let share = pool / (pool + timer);
    assert!((share - 0.8).abs() < 0.2, "{share}: {metrics}");
    for line in metrics
        .lines()
        .filter(|line| line.starts_with("# HELP route_wait"))
    {
        assert!(line.is_ascii() && line.len() < 300, "{line}");
    }
}

static GATE: Semaphore = Semaphore::const_new(0);

async fn at_the_gate() {
    drop(GATE.acquire().await);
}

#[test]
fn requests_of_the_last_minutes_are_at_their_lines_though_nothing_was_counted_before() {
    let (_runtime, own, admin) = service(DebugEndpoints::new, |debug| {
        let routes = Router::new().route("/gate", get(at_the_gate));
        routes.layer(debug.layer())
    });
    let _waiting: Vec<_> = (0..7)
        .map(|_| {
            let mut stream = TcpStream::connect(own).expect("it listens");
            write!(stream, "GET /gate HTTP/1.1\r\nHost: shop\r\n\r\n").expect("sent");
            stream
        })
        .collect();
    let mut lines = include_str!("counts.rs").lines();
    let line = lines.position(|line| line.contains("drop(GATE.acquire()"));
    let place = format!("tests/counts.rs:{})", line.expect("this function") + 1);
    let end = Instant::now() + Duration::from_secs(100);
    loop {
        let answer = ask(admin, "/debug/await/recent");
        assert_eq!(answer.status, 200, "{}", answer.text());
        let recent: serde_json::Value = serde_json::from_slice(&answer.body).expect("JSON");
        let band = &recent["bands"][0];
        let is_named = band["place"]
            .as_str()
            .is_some_and(|one| one.contains("at_the_gate") && one.ends_with(&place));
        let intervals = band["requests"].as_array().map_or(0, Vec::len);
        let all = recent["samples"].as_u64().expect("a number");
        if is_named && all > 30 {
            assert_eq!(band["route"], "GET /gate");
            assert_eq!(band["wait"], "limit");
            assert_eq!(band["samples"], all, "there is no other place: {recent}");
            assert_eq!(intervals, 60);
            break;
        }
        assert!(Instant::now() < end, "{recent}");
        thread::sleep(Duration::from_millis(300));
    }
    assert!(!ask(admin, "/metrics").text().contains("route_wait"));
}

#[test]
fn without_counts_there_are_no_series_and_with_them_at_most_so_many() {
    static LOCK: Mutex<()> = Mutex::const_new(());
    let (_runtime, own, admin) = service(DebugEndpoints::new, |debug| {
        let any = async || {
            let _lock = LOCK.lock().await;
            "here"
        };
        Router::new()
            .route("/any", get(any))
            .layer(debug.profiler().layer())
    });
    assert_eq!(ask(own, "/any").status, 200);
    assert!(!ask(admin, "/metrics").text().contains("route_wait"));

    let (_runtime, own, admin) = service(
        || DebugEndpoints::new().count_waits().count_waits(),
        |debug| {
            let busy = async || {
                // A request that computes needs no names to be counted.
                thread::sleep(Duration::from_millis(20));
                "here"
            };
            let app = Router::new().fallback(get(busy));
            app.layer(debug.profiler().layer())
        },
    );
    // Names of routes that clients choose.
    thread::scope(|scope| {
        for user in 0..8 {
            scope.spawn(move || {
                for number in 0..60 {
                    assert_eq!(ask(own, &format!("/{user}/{number}")).status, 200);
                }
            });
        }
    });
    let metrics = ask(admin, "/metrics").text();
    let mut routes = HashMap::<&str, usize>::new();
    for line in metrics.lines() {
        if let Some(labels) = line.strip_prefix("route_wait_seconds_total{route=\"") {
            let (route, _) = labels.split_once('"').expect("a label");
            *routes.entry(route).or_default() += 1;
        }
    }
    assert!(routes.len() <= 33, "{metrics}");
    assert!(routes.values().all(|waits| *waits <= 22), "{metrics}");
}
