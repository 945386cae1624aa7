//! What a reader relies on: all variants answer alike and keep every body, and they differ in which
//! thread waits for files.

use std::time::Duration;

use bench::server::Server;
use bench::testing::{assert_answers, count, get as ask, load, start, value as read};
use measurement::load::{Exchange, Load};

const PROGRAM: &str = env!("CARGO_BIN_EXE_chapter8");
const VARIANTS: [&str; 9] = [
    "problem",
    "exercise",
    "solution",
    "few-at-once",
    "permit",
    "dispatch",
    "per-chunk",
    "per-body",
    "tokio-fs",
];

#[test]
fn all_variants_answer_alike() {
    for (data_seed, answer) in [
        (0, "255 is the highest of 1048576 bytes"),
        (1_000, "151 is the highest of 1048579 bytes"),
    ] {
        for variant in VARIANTS {
            let server = start(PROGRAM, variant, data_seed, &[]);
            let summary = ("/summarize", answer);
            assert_answers(&server, variant, &[summary, summary, ("/ping", "pong")]);
        }
    }
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
    let answer = "255 is the highest of 1048576 bytes";
    let users = Load {
        warm_up: Duration::ZERO,
        duration: Duration::from_secs(2),
        ..Load::closed(Exchange::get("/summarize", answer), 64)
    };
    let answers = load(&server, &users).completed;
    let kept = count(&server, "bodies_kept_total");
    assert!(kept >= answers, "{variant}: {kept} of {answers}");
    server
}

const SHARE: &str = "reactor_file_bytes_share";

#[test]
fn the_problems_reactor_writes_and_reads_all_files_however_few_at_once() {
    for variant in ["problem", "few-at-once"] {
        let share = read(&under_load(variant), SHARE);
        assert!(share >= 0.9, "{variant}: {share}");
    }
}

#[test]
fn every_other_variant_leaves_the_reactor_alone_and_has_few_threads() {
    for variant in VARIANTS {
        if ["problem", "exercise", "few-at-once"].contains(&variant) {
            continue;
        }
        let server = under_load(variant);
        let share = read(&server, SHARE);
        assert!(share <= 0.1, "{variant}: {share}");
        if cfg!(target_os = "linux") {
            let threads = read(&server, "process_threads");
            assert!(threads <= 32.0, "{variant}: {threads} threads");
        }
    }
}
