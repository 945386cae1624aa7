//! Questions to an allocator whose answers would hold the service's threads up.
#![cfg(all(
    target_os = "linux",
    target_env = "gnu",
    not(feature = "heap"),
    not(feature = "jemalloc")
))]

mod common;

use std::hint::black_box;

use common::ask;
use debug_endpoints::DebugEndpoints;

#[test]
fn an_allocator_with_many_free_pieces_is_not_asked() {
    let admin = DebugEndpoints::new()
        .listen("127.0.0.1:0")
        .expect("a free port");
    let memory = || {
        let answer = ask(admin, "/debug/memory?seconds=0.2");
        serde_json::from_slice::<serde_json::Value>(&answer.body).expect("JSON")
    };
    // While there are few free pieces, it is asked.
    for _ in 0..2 {
        let told = memory();
        assert!(told["live"].is_object(), "{told}");
    }
    // Each second piece is free, so none can be joined with its neighbour, and glibc would walk from one to the next.
    let mut pieces = Vec::new();
    for _ in 0..1_500_000 {
        pieces.push(black_box(vec![1_u8; 150]));
    }
    let pieces: Vec<Vec<u8>> = pieces.into_iter().step_by(2).collect();
    // Not even once, to find out how long it takes.
    let told = memory();
    assert!(told["live"].is_null(), "{told}");
    assert_eq!(told["counted_in"], 0.0, "{told}");
    let says = told["says"].as_str().unwrap_or_default();
    assert!(says.contains("was not asked"), "{told}");
    drop(black_box(pieces));
}
