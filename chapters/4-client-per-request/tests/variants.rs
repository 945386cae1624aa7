//! Number of connections that each variant needs: requests that share a client share connections.

use std::time::Duration;

use course::bench::testing::{count, get, start};

/// Between two requests of a user who leaves a client time to have its connection back.
const CALM: Duration = Duration::from_millis(50);

/// Fewest connections that the upstream saw after one user's `requests`, with this pause after each, in up to three attempts.
/// On a machine that stands still, a connection may not be back in its pool for the next request.
fn connections(variant: &str, requests: u64, pause: Duration, options: &[&str]) -> u64 {
    let mut fewest = u64::MAX;
    for _ in 0..3 {
        fewest = fewest.min(connections_once(variant, requests, pause, options));
        if fewest == 1 {
            break;
        }
    }
    fewest
}

fn connections_once(variant: &str, requests: u64, pause: Duration, options: &[&str]) -> u64 {
    let server = start(env!("CARGO_BIN_EXE_chapter4"), variant, 0, options);
    for _ in 0..requests {
        let answer = get(&server, "/io");
        assert_eq!(
            answer.as_deref(),
            Ok(r#"{"status":200,"msg":"Good Luck!"}"#)
        );
        std::thread::sleep(pause);
    }
    assert_eq!(count(&server, "upstream_requests_total"), requests);
    count(&server, "upstream_connections_total")
}

// ANCHOR: shared
#[test]
fn a_shared_client_needs_one_connection_for_one_user() {
    for variant in ["solution", "hyper-shared"] {
        assert_eq!(connections(variant, 5, CALM, &[]), 1, "{variant}");
    }
    assert_eq!(connections("solution", 5, CALM, &["--tls"]), 1);
}
// ANCHOR_END: shared

/// The clients of the probe's own are one request in 64: what the prediction is computed from.
#[test]
fn a_client_per_request_is_a_connection_per_request() {
    let pause = Duration::ZERO;
    for variant in [
        "problem",
        "no-roots",
        "one-tls-config",
        "no-pool",
        "hyper-per-request",
    ] {
        assert_eq!(connections(variant, 5, pause, &[]), 5, "{variant}");
    }
    assert_eq!(connections("problem", 5, pause, &["--tls"]), 5);
    assert_eq!(connections("few-clients", 129, pause, &[]), 4);
}
