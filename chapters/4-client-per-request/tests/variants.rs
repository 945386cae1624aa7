//! How many connections each variant needs: who shares a client shares connections.

use bench::server::Server;
use bench::testing::{count, get, load, start};
use measurement::load::{Exchange, Load};

const ANSWER: &str = r#"{"status":200,"msg":"Good Luck!"}"#;
const PROGRAM: &str = env!("CARGO_BIN_EXE_chapter4");

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

fn answer(server: &Server, path: &str) -> String {
    get(server, path).unwrap_or_else(|refusal| panic!("{path}: {refusal}"))
}

/// Connections and requests that the upstream saw.
fn seen(server: &Server) -> (u64, u64) {
    (
        count(server, "upstream_connections_total"),
        count(server, "upstream_requests_total"),
    )
}

#[test]
fn a_client_per_request_is_a_connection_per_request() {
    for variant in PER_REQUEST {
        let server = start(PROGRAM, variant, 0, &[]);
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
        let server = start(PROGRAM, variant, 0, &[]);
        for _ in 0..5 {
            answer(&server, "/io");
        }
        assert_eq!(seen(&server), (1, 5), "{variant}");
    }
}
// ANCHOR_END: shared

/// Its own clients are one request in 64: what the prediction is computed from.
#[test]
fn the_probe_opens_two_connections_and_one_more_for_every_64_requests() {
    let server = start(PROGRAM, "few-clients", 0, &[]);
    for _ in 0..129 {
        answer(&server, "/io");
    }
    assert_eq!(seen(&server), (4, 129));
}

#[test]
fn twenty_users_need_no_more_than_some_dozens_of_connections() {
    let server = start(PROGRAM, "solution", 0, &[]);
    let outcome = load(&server, &Load::closed(Exchange::get("/io", ANSWER), 20));
    let (connections, requests) = seen(&server);
    assert!(requests >= outcome.completed);
    assert!(connections <= 60, "{connections} for {requests} requests");
}

#[test]
fn over_tls_the_same_is_true() {
    for (variant, expected) in [("problem", (5, 5)), ("solution", (1, 5))] {
        let server = start(PROGRAM, variant, 0, &["--tls"]);
        for _ in 0..5 {
            assert_eq!(answer(&server, "/io"), ANSWER, "{variant}");
        }
        assert_eq!(seen(&server), expected, "{variant}");
    }
}
