//! k6 and Locust send the users of the bench.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The ticket shop's users are the same, whoever sends them; both scripts read the table of objectives.
#[test]
fn the_capstones_scripts_have_the_users_of_its_bench() {
    let user = fs::read_to_string(root().join("crates/shop-bench/src/journeys/user.rs")).unwrap();
    let constants = user.lines().filter_map(|line| {
        let (name, value) = line.strip_prefix("const ")?.split_once(": ")?;
        Some((name, value.split_once(" = ")?.1.trim_end_matches(';')))
    });
    let mut numbers = 0;
    for (name, value) in constants {
        if value.replace('_', "").parse::<u64>().is_ok() {
            both_of_the_capstone_say(value, &format!("{name}: {value}"));
            numbers += 1;
        }
    }
    assert!(numbers >= 6, "{numbers} numbers in user.rs");
    let sample = root().join("crates/shop-bench/src/journeys/fingerprints.rs");
    let sample = fs::read_to_string(sample).unwrap();
    let start = sample.find("const CATEGORIES").unwrap();
    let lists = &sample[start..sample[start..].find("\n\n").unwrap() + start];
    for word in lists.split('"').skip(1).step_by(2) {
        both_of_the_capstone_say(word, word);
    }
    let table = fs::read_to_string(root().join("crates/shop-bench/objectives.toml")).unwrap();
    for line in table.lines().filter(|line| line.contains(" = ")) {
        let (_, value) = line.split_once(" = ").unwrap();
        let is_number = |text: &str| text.parse::<u32>().is_ok();
        let journey = value.strip_prefix("{ share = ").and_then(|rest| {
            let (share, worth) = rest.strip_suffix(" }")?.split_once(", worth = ")?;
            Some(is_number(share) && is_number(worth))
        });
        let is_read = is_number(value) || journey == Some(true);
        assert!(is_read, "the scripts' expressions do not match `{line}`");
    }
}

#[track_caller]
fn both_of_the_capstone_say(word: &str, what: &str) {
    for script in ["k6/capstone.js", "locust/capstone.py"] {
        let text = fs::read_to_string(root().join(script)).unwrap();
        let is_there = text
            .split(|letter: char| !letter.is_alphanumeric() && letter != '_')
            .any(|part| part == word);
        assert!(is_there, "{script} does not have `{what}` of user.rs");
    }
}
