//! Reports of the chapter's stages on themselves, beside the claims that `check` and `prove` judge.

use std::thread;

use children::environment::numa_nodes;
use course::bench::testing::{self, TIME_OUT, post};
use serde::Deserialize;

const PROGRAM: &str = env!("CARGO_BIN_EXE_chapter7");

/// The copies and readers of `/debug/placement`, as far as they are looked at here.
#[derive(Debug, Deserialize)]
struct Placement {
    copies: Vec<Copy>,
    readers: Vec<Reader>,
}

/// A copy of the texts.
#[derive(Debug, Deserialize)]
struct Copy {}

/// A thread that has read.
#[derive(Debug, Deserialize)]
struct Reader {
    /// The only CPU that it may run on, if there is but one.
    pinned_to: Option<usize>,
    reads: u64,
    /// Number of reads as a pinned thread, from a copy that a pinned thread of the same node wrote.
    at_home: u64,
}

/// Returns a variant's `/debug/placement` after requests on several connections at once.
fn placement(variant: &str) -> Placement {
    let server = testing::start(PROGRAM, variant, 0, &["--texts", "20000"]);
    // As long as a text: of a shorter one no text is looked at.
    let letter = "None of the forbidden texts begins as this letter does. ".repeat(12);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let answer = testing::ask(&server, &post("/check", &letter, ""));
                assert_eq!(answer.as_deref(), Ok("false"));
            });
        }
    });
    let text = server.ask("/debug/placement", TIME_OUT).expect("it tells");
    serde_json::from_slice(&text).expect("a placement")
}

/// `region_cached` keeps one copy more, to copy from. Workers that wander may not have come to every
/// node yet. With one CPU every thread counts as pinned to it.
#[cfg(target_os = "linux")]
#[test]
fn each_stage_has_its_copies_and_only_the_last_two_read_at_home() {
    let nodes = numa_nodes() as usize;
    let is_pinnable = children::cpus::count() > 1;
    for (variant, copies, pinned, at_home) in [
        ("problem", 1..=1, false, false),
        ("copies", 2..=nodes + 1, false, false),
        ("region-local", nodes..=nodes, true, true),
        ("solution", nodes + 1..=nodes + 1, true, true),
    ] {
        let placement = placement(variant);
        assert!(
            copies.contains(&placement.copies.len()),
            "{variant}: {placement:?}"
        );
        for reader in placement.readers.iter().filter(|_| is_pinnable) {
            assert_eq!(reader.pinned_to.is_some(), pinned, "{variant}: {reader:?}");
            let home = if at_home { reader.reads } else { 0 };
            assert_eq!(reader.at_home, home, "{variant}: {reader:?}");
        }
    }
}
