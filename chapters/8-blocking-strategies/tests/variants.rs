//! What a reader relies on: all variants answer alike, keep a body in every way by every strategy,
//! and differ in whether the reactor waits for files.

use std::time::Duration;

use bench::server::Server;
use bench::testing::{assert_answers, get as ask, load, start, value as read};
use measurement::load::{Exchange, Load};

const PROGRAM: &str = env!("CARGO_BIN_EXE_chapter8");
const VARIANTS: [&str; 7] = [
    "problem",
    "exercise",
    "solution",
    "few-at-once",
    "permit",
    "dispatch",
    "spawn-blocking",
];
const MIB: f64 = 1024.0 * 1024.0;

#[test]
fn all_variants_answer_alike() {
    for (data_seed, answer) in [
        (0, "255 is the highest of 8388608 bytes"),
        (1_000, "151 is the highest of 8388611 bytes"),
    ] {
        for variant in VARIANTS {
            let server = start(PROGRAM, variant, data_seed, &[]);
            let summary = ("/summarize", answer);
            assert_answers(&server, variant, &[summary, summary, ("/ping", "pong")]);
        }
    }
}

#[test]
fn every_strategy_takes_every_way_to_keep_a_body() {
    let server = start(PROGRAM, "problem", 0, &[]);
    for keep in ["", "ram", "ram_gather", "fs", "mmap", "mmap_copy"] {
        for strategy in ["direct", "permit", "dispatch", "spawn_blocking"] {
            for bytes in [1, 300_000, 2_000_000] {
                let keep = keep.split_whitespace().map(|keep| format!("&keep={keep}"));
                let keep: String = keep.collect();
                let path = format!("/summarize?strategy={strategy}&bytes={bytes}{keep}");
                let answer = format!("255 is the highest of {bytes} bytes");
                assert_eq!(ask(&server, &path), Ok(answer), "{path}");
            }
        }
    }
    let refusal = ask(&server, "/summarize?strategy=fastest").expect_err("no such strategy");
    assert!(refusal.starts_with("400"), "{refusal}");
}

#[test]
fn too_large_a_body_is_a_413_and_nobody_else_suffers() {
    for variant in ["problem", "solution"] {
        let server = start(PROGRAM, variant, 0, &[]);
        let refusal = ask(&server, "/summarize?bytes=1000000000").expect_err("too large");
        assert!(refusal.starts_with("413"), "{variant}: {refusal}");
        let answer = ask(&server, "/summarize?bytes=1000000");
        assert_eq!(answer.as_deref(), Ok("255 is the highest of 1000000 bytes"));
    }
}

/// A server after 64 bodies at once and again.
fn under_load(variant: &str) -> Server {
    let server = start(PROGRAM, variant, 0, &[]);
    let answer = "255 is the highest of 8388608 bytes";
    let users = Load {
        warm_up: Duration::ZERO,
        duration: Duration::from_secs(3),
        ..Load::closed(Exchange::get("/summarize", answer), 64)
    };
    load(&server, &users);
    server
}

const FILE_BYTES: &str = "reactor_file_bytes_between_ticks_peak";

#[test]
fn the_problems_reactor_reads_whole_bodies_back() {
    let bytes = read(&under_load("problem"), FILE_BYTES);
    assert!(bytes >= 8.0 * MIB, "{bytes} bytes");
}

#[test]
fn sixty_four_bodies_at_once_leave_the_reactor_alone_and_need_little_memory() {
    let server = under_load("solution");
    let bytes = read(&server, FILE_BYTES);
    assert!(bytes.abs() < f64::EPSILON, "{bytes} bytes");
    let memory = read(&server, "process_memory_peak_bytes") / MIB;
    assert!(memory < 256.0, "{memory} MiB");
    let threads = read(&server, "process_threads");
    assert!(threads <= 48.0, "{threads} threads");
}
