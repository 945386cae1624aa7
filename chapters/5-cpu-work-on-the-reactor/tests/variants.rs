//! How the variants differ: who has to wait for the work, and how much of it runs at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bench::server::Server;
use bench::testing::{load, start, value as read};
use measurement::load::{Bystander, Exchange, Load};
use measurement::outcome::Latency;

const PROGRAM: &str = env!("CARGO_BIN_EXE_chapter5");
const USERS: u32 = 24;

/// Two seconds of users who never pause.
fn users() -> Load {
    Load {
        warm_up: Duration::from_millis(500),
        duration: Duration::from_secs(2),
        ..Load::closed(Exchange::get("/data", "4"), USERS)
    }
}

/// A server under the users with pings beside them, and what the pings waited.
fn under_load(variant: &str) -> (Server, Latency) {
    let server = start(PROGRAM, variant, 0, &[]);
    let with_pings = Load {
        bystander: Some(Bystander {
            exchange: Exchange::get("/ping", "pong"),
            per_second: 100.0,
        }),
        ..users()
    };
    let outcome = load(&server, &with_pings);
    let bystander = outcome.bystander.expect("it was asked for");
    (server, bystander.latency)
}

/// What so many of a hundred pings waited at most, in ms.
fn waited(pings: &Latency, percent: f64) -> f64 {
    pings.at(percent / 100.0).expect("pings were answered")
}

/// As many as there are CPUs at most.
fn assert_what_runs(server: &Server, variant: &str) {
    let most = read(server, "work_running_peak_per_cpu");
    assert!(most > 0.0 && most <= 1.0, "{variant}: {most} per CPU");
}

#[test]
fn only_a_fix_takes_the_work_from_the_reactors_thread() {
    let pieces = "reactor_work_between_ticks_peak";
    let (server, pings) = under_load("problem");
    let most = read(&server, pieces);
    assert!(most >= f64::from(USERS / 2), "{most} pieces");
    // A generator that stumbles leaves out some users, whose work takes 4 ms each.
    let half_a_tick = 2.0 * f64::from(USERS);
    let slow = waited(&pings, 99.0);
    assert!(slow > half_a_tick, "{slow} ms");
    let late = 1e3 * read(&server, "reactor_stall_p99_seconds");
    assert!(late > half_a_tick, "{late} ms");
    assert_what_runs(&server, "problem");
    for variant in ["solution", "rayon", "second-runtime"] {
        let (server, fixed) = under_load(variant);
        let most = read(&server, pieces);
        assert!(most < 0.5, "{variant}: {most} pieces");
        // Where the machine stops everything for a moment, the slowest say nothing of the server.
        let usual = (waited(&fixed, 50.0), waited(&pings, 50.0));
        assert!(usual.0 < usual.1 / 3.0, "{variant}: {usual:?} ms");
        let late_when_fixed = 1e3 * read(&server, "reactor_stall_p99_seconds");
        assert!(
            late_when_fixed < late / 3.0,
            "{variant}: {late_when_fixed} ms"
        );
        assert_what_runs(&server, variant);
    }
    // Off the thread, and far more of them than can run.
    let (server, _) = under_load("unbounded");
    let most = read(&server, pieces);
    assert!(most < 0.5, "unbounded: {most} pieces");
    let most = read(&server, "work_running_peak");
    assert!(most >= f64::from(USERS / 2), "unbounded: {most}");
    // As many as can run, and still in the reactors' way.
    let (server, _) = under_load("multi-thread");
    let most = read(&server, pieces);
    assert!(most > 0.5, "multi-thread: {most} pieces");
    assert_what_runs(&server, "multi-thread");
}

/// How many connections were begun and not finished, at the median of many looks and at most: where the
/// machine stops the generator for a moment, some of them are closed late.
fn open_connections(variant: &str) -> (f64, f64) {
    let server = start(PROGRAM, variant, 0, &[]);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut looks = Vec::new();
            while !done.load(Ordering::Relaxed) {
                looks.push(read(&server, "connections_open"));
                std::thread::sleep(Duration::from_millis(20));
            }
            looks.sort_by(f64::total_cmp);
            (looks[looks.len() / 2], looks[looks.len() - 1])
        });
        let strangers = Load {
            keep_alive: false,
            ..users()
        };
        load(&server, &strangers);
        done.store(true, Ordering::Relaxed);
        watcher.join().expect("the admin listener answers")
    })
}

#[test]
fn the_solution_takes_connections_before_it_has_finished_others() {
    let (open, _) = open_connections("problem");
    assert!(open <= 2.0, "{open}");
    let (_, open) = open_connections("solution");
    assert!(open >= f64::from(USERS / 2), "{open}");
}
