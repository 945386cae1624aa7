//! What a reader relies on: all variants answer alike and do the work, and they differ in who has
//! to wait for it.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use evidence::generator::{self, Settings};
use evidence::interrupt::Interrupt;
use evidence::load::{Exchange, Load, Probe};
use evidence::outcome::Outcome;
use evidence::server::{Launch, Server, get};

const VARIANTS: [&str; 6] = [
    "problem",
    "exercise",
    "solution",
    "multi-thread",
    "rayon",
    "unbounded",
];
const USERS: u32 = 24;

fn start(variant: &str, data_seed: u64) -> Server {
    let launch = Launch {
        data_seed,
        ..Launch::of(Path::new(env!("CARGO_BIN_EXE_chapter5")), variant)
    };
    Server::start(&launch, &Interrupt::new()).expect("the server starts")
}

/// Two seconds of users who never pause.
fn load(server: &Server, change: impl FnOnce(Load) -> Load) -> Outcome {
    let load = change(Load {
        warm_up: Duration::from_millis(500),
        duration: Duration::from_secs(2),
        ..Load::closed(Exchange::get("/data", "4"), USERS)
    });
    let interrupt = Interrupt::new();
    let settings = Settings::of(&interrupt);
    let outcome = generator::run(server.service(), &load, &settings).expect("it can be sent");
    assert_eq!(outcome.wrong_answers, 0);
    assert_eq!(outcome.error_count(), 0);
    outcome
}

fn read(server: &Server, metric: &str) -> f64 {
    let metrics = server.metrics().expect("the admin listener answers");
    metrics.get(metric).expect("the lab counts it")
}

#[test]
fn all_variants_answer_alike_and_do_the_work() {
    let patience = Duration::from_secs(10);
    for (data_seed, answer) in [(0, "4"), (1_000, "1004")] {
        for variant in VARIANTS {
            let server = start(variant, data_seed);
            for _ in 0..3 {
                let body = get(server.service(), "/data", patience);
                assert_eq!(body.as_deref(), Ok(answer.as_bytes()), "{variant}");
                let body = get(server.service(), "/ping", patience);
                assert_eq!(body.as_deref(), Ok(&b"pong"[..]), "{variant}");
            }
            let elsewhere = get(server.service(), "/", patience);
            assert!(elsewhere.expect_err("no such path").starts_with("404"));
            let runs = read(&server, "work_runs_total");
            assert!((runs - 3.0).abs() < 0.5, "{variant}: {runs} runs");
        }
    }
}

/// What a server did under the users, with pings beside them.
struct Loaded {
    /// The most pieces of work on the reactor's thread between two of its heartbeats.
    on_the_reactor: f64,
    /// The most that ran at once.
    at_once: f64,
    /// That, for each processor.
    at_once_per_processor: f64,
    /// What half of the pings waited at least, in ms: where the machine stops the generator for a
    /// moment, the slowest say nothing of the server.
    ping: f64,
}

fn under_load(variant: &str) -> Loaded {
    let server = start(variant, 0);
    let outcome = load(&server, |load| Load {
        probe: Some(Probe {
            exchange: Exchange::get("/ping", "pong"),
            per_second: 100.0,
        }),
        ..load
    });
    let probe = outcome.probe.expect("it was asked for");
    Loaded {
        on_the_reactor: read(&server, "reactor_work_between_ticks_peak"),
        at_once: read(&server, "work_running_peak"),
        at_once_per_processor: read(&server, "work_running_peak_per_processor"),
        ping: probe.latency.at(0.5).expect("pings were answered"),
    }
}

#[test]
fn only_a_cure_takes_the_work_from_the_reactors_thread() {
    let half = f64::from(USERS / 2);
    let problem = under_load("problem");
    let pieces = problem.on_the_reactor;
    assert!(pieces >= half, "{pieces} pieces");
    for variant in ["solution", "rayon"] {
        let cured = under_load(variant);
        let pieces = cured.on_the_reactor;
        assert!(pieces < 0.5, "{variant}: {pieces} pieces");
        let pings = (cured.ping, problem.ping);
        assert!(pings.0 < pings.1 / 3.0, "{variant}: {pings:?} ms");
        let at_once = cured.at_once_per_processor;
        assert!(at_once > 0.0 && at_once <= 1.0, "{variant}: {at_once}");
    }
    // Off the thread, and far more of them than can run.
    let unbounded = under_load("unbounded");
    let pieces = unbounded.on_the_reactor;
    assert!(pieces < 0.5, "unbounded: {pieces} pieces");
    let most = unbounded.at_once;
    assert!(most >= half, "unbounded: {most} at once");
    // As many as can run, and still in the reactors' way.
    let threads = under_load("multi-thread");
    let pieces = threads.on_the_reactor;
    assert!(pieces > 0.5, "multi-thread: {pieces} pieces");
    let at_once = threads.at_once_per_processor;
    assert!(at_once > 0.0 && at_once <= 1.0, "multi-thread: {at_once}");
}

/// How many connections were begun and not finished, at the median of many looks: where the machine
/// stops the generator for a moment, some of them are closed late.
fn open_connections(variant: &str) -> f64 {
    let server = start(variant, 0);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut looks = Vec::new();
            while !done.load(Ordering::Relaxed) {
                looks.push(read(&server, "connections_open"));
                std::thread::sleep(Duration::from_millis(20));
            }
            looks.sort_by(f64::total_cmp);
            looks[looks.len() / 2]
        });
        load(&server, |load| Load {
            keep_alive: false,
            ..load
        });
        done.store(true, Ordering::Relaxed);
        watcher.join().expect("the admin listener answers")
    })
}

#[test]
fn the_solution_takes_connections_before_it_has_finished_others() {
    let open = open_connections("problem");
    assert!(open <= 2.0, "{open}");
    let open = open_connections("solution");
    assert!(open >= f64::from(USERS / 2), "{open}");
}
