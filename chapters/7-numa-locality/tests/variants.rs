//! What a reader relies on: all variants answer alike, and each makes the copies and keeps to the
//! CPUs that it says.

use std::thread;

use bench::environment::numa_nodes;
use bench::server::Server;
use bench::testing::{self, TIME_OUT, assert_answers, assert_contract, post};
use numa::record::Placement;

const PROGRAM: &str = env!("CARGO_BIN_EXE_chapter7");
const VARIANTS: [&str; 8] = [
    "problem",
    "exercise",
    "solution",
    "basic",
    "thread-isolated",
    "copies",
    "pinned",
    "region-local",
];

fn start(variant: &str) -> Server {
    testing::start(PROGRAM, variant, 0, &["--texts", "20000"])
}

/// What `/check` answers to a body, on a connection of its own.
fn check(server: &Server, body: &str) -> String {
    testing::ask(server, &post("/check", body, "")).expect("it answers")
}

/// What a variant says of itself after it was asked on several connections at once.
fn placement(variant: &str) -> Placement {
    let server = start(variant);
    // As long as a text: of a shorter one no text is looked at.
    let letter = "None of the forbidden texts begins as this letter does. ".repeat(12);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(check(&server, &letter), "false"));
        }
    });
    let text = server.ask("/debug/placement", TIME_OUT).expect("it tells");
    serde_json::from_slice(&text).expect("a placement")
}

#[test]
fn all_variants_answer_alike() {
    let number = |number: u32| format!("{number:020}").repeat(32);
    for variant in VARIANTS {
        let server = start(variant);
        for (body, answer) in [
            (number(0), "true"),
            (number(19_999) + " and more", "true"),
            (number(20_000), "false"),
            (number(7)[..639].to_owned(), "false"),
            (
                "None of the forbidden texts begins as this letter does. ".repeat(12),
                "false",
            ),
            (String::new(), "false"),
        ] {
            assert_eq!(check(&server, &body), answer, "{variant}: {body}");
        }
        assert_answers(&server, variant, &[]);
    }
}

#[test]
fn who_keeps_copies_has_one_for_each_region_and_one_to_copy_from() {
    for (variant, copies) in [("problem", 1), ("pinned", 1)] {
        assert_eq!(placement(variant).copies.len(), copies, "{variant}");
    }
    let solution = placement("solution").copies;
    assert_eq!(solution.len(), numa_nodes() as usize + 1);
    let built_anew = placement("region-local").copies;
    assert_eq!(built_anew.len(), numa_nodes() as usize);
    // Workers that wander may not have come to every node yet.
    assert!((2..=solution.len()).contains(&placement("copies").copies.len()));
}

#[test]
#[cfg(target_os = "linux")]
fn only_pinned_workers_with_a_copy_of_their_region_are_at_home() {
    if loadgen::cpus::count() < 2 {
        // With one CPU every thread counts as pinned to it.
        return;
    }
    for (variant, pinned, at_home) in [
        ("problem", false, false),
        ("copies", false, false),
        ("pinned", true, false),
        ("region-local", true, true),
        ("solution", true, true),
    ] {
        for reader in placement(variant).readers {
            assert_eq!(reader.pinned_to.is_some(), pinned, "{variant}: {reader:?}");
            let home = if at_home { reader.reads } else { 0 };
            assert_eq!(reader.at_home, home, "{variant}: {reader:?}");
        }
    }
}

#[test]
fn variants_keep_the_contract() {
    assert_contract(
        PROGRAM,
        include_str!("../chapter.toml"),
        &["exercise", "pinned", "region-local", "solution"],
    );
}
