//! What a reader relies on: all variants answer alike, and who shares a client shares connections.

use std::path::Path;
use std::time::{Duration, Instant};

use bench::server::{Launch, Server, get};
use loadgen::Settings;
use loadgen::interrupt::Interrupt;
use measurement::load::{Exchange, Load};

const ANSWER: &str = r#"{"status":200,"msg":"Good Luck!"}"#;
const TIMEOUT: Duration = Duration::from_secs(10);

/// Variants that open a connection for each request.
const PER_REQUEST: [&str; 6] = [
    "problem",
    "exercise",
    "no-roots",
    "one-tls-config",
    "no-pool",
    "hyper-per-request",
];
const SHARED: [&str; 2] = ["solution", "hyper-shared"];

fn start(variant: &str, data_seed: u64, arguments: &[&str]) -> Server {
    let arguments: Vec<String> = arguments.iter().copied().map(str::to_owned).collect();
    let launch = Launch {
        data_seed,
        arguments: &arguments,
        ..Launch::of(Path::new(env!("CARGO_BIN_EXE_chapter4")), variant)
    };
    Server::start(&launch, &Interrupt::new()).expect("the server starts")
}

fn answer(server: &Server, path: &str) -> String {
    let body = get(server.service(), path, TIMEOUT);
    let body = body.unwrap_or_else(|refusal| panic!("{path}: {refusal}"));
    String::from_utf8(body).expect("text")
}

/// Connections and requests that the upstream saw.
fn seen(server: &Server) -> (u64, u64) {
    let metrics = server.metrics().expect("the admin listener answers");
    let count = |name| metrics.count(name).expect("the lab counts it");
    (
        count("upstream_connections_total"),
        count("upstream_requests_total"),
    )
}

#[test]
fn all_variants_answer_alike() {
    for (data_seed, expected) in [(0, ANSWER), (7, r#"{"status":200,"msg":"Good Luck, 7!"}"#)] {
        for variant in PER_REQUEST.into_iter().chain(SHARED) {
            let server = start(variant, data_seed, &[]);
            assert_eq!(answer(&server, "/io"), expected, "{variant}");
            assert_eq!(answer(&server, "/static"), ANSWER, "{variant}");
            let elsewhere = get(server.service(), "/", TIMEOUT);
            assert!(elsewhere.expect_err("no such path").starts_with("404"));
        }
    }
}

#[test]
fn a_client_per_request_is_a_connection_per_request() {
    for variant in PER_REQUEST {
        let server = start(variant, 0, &[]);
        for _ in 0..5 {
            answer(&server, "/io");
        }
        assert_eq!(seen(&server), (5, 5), "{variant}");
    }
}

// ANCHOR: shared
#[test]
fn a_shared_client_needs_one_connection_for_one_user() {
    for variant in SHARED {
        let server = start(variant, 0, &[]);
        for _ in 0..5 {
            answer(&server, "/io");
        }
        assert_eq!(seen(&server), (1, 5), "{variant}");
    }
}
// ANCHOR_END: shared

#[test]
fn twenty_users_need_no_more_than_some_dozens_of_connections() {
    let server = start("solution", 0, &[]);
    let load = Load::closed(Exchange::get("/io", ANSWER), 20);
    let interrupt = Interrupt::new();
    let settings = Settings::of(&interrupt);
    let outcome = loadgen::run(server.service(), &load, &settings).expect("the load can be sent");
    assert_eq!(outcome.wrong_answers + outcome.error_count(), 0);
    let (connections, requests) = seen(&server);
    assert!(requests >= outcome.completed);
    assert!(connections <= 60, "{connections} for {requests} requests");
}

#[test]
fn over_tls_the_same_is_true() {
    for (variant, expected) in [("problem", (5, 5)), ("solution", (1, 5))] {
        let server = start(variant, 0, &["--tls"]);
        for _ in 0..5 {
            assert_eq!(answer(&server, "/io"), ANSWER, "{variant}");
        }
        assert_eq!(seen(&server), expected, "{variant}");
    }
}

#[test]
fn an_upstream_on_a_network_is_waited_for() {
    let server = start("solution", 0, &["--upstream-latency-ms", "200"]);
    let asked = Instant::now();
    assert_eq!(answer(&server, "/io"), ANSWER);
    assert!(asked.elapsed() >= Duration::from_millis(200));
}
