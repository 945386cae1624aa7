//! Edits of each chapter's exercise, `chapters/N-name/edits.md`: right fixes of different kinds, which `check` must pass,
//! and mistakes that people make, which it must fail with the sentence that the edit names.
//!
//!     cargo test -p workshop --test repository edits        do all of them apply?
//!     EDITS=1 .ci/run every_edit                            grade those of chapter 1

use std::fs;
use std::path::Path;

use crate::{chapters, clone_into, command, root, succeed, verdicts};

/// The line of a mistake that says what the grade's reason contains.
const EXPECTED: &str = "Expected: ";

/// One edit of an exercise.
struct Edit {
    chapter: u32,
    name: String,
    is_fix: bool,
    /// Words that the reason of a mistake's grade must contain.
    expected: Option<String>,
    /// The edit as a patch.
    diff: String,
}

impl Edit {
    /// Runs `git WORDS` of the patch in a folder.
    fn apply(&self, folder: &Path, words: &str) {
        let mut patch = tempfile::NamedTempFile::new().unwrap();
        std::io::Write::write_all(&mut patch, self.diff.as_bytes()).unwrap();
        println!("chapter {}: {}", self.chapter, self.name);
        succeed(command("git", words).arg(patch.path()).current_dir(folder));
    }
}

/// Reads the headings and the blocks of all chapters' edits.
fn edits() -> Vec<Edit> {
    let mut edits = Vec::new();
    for (chapter, folder) in chapters() {
        let text = fs::read_to_string(folder.join("edits.md")).unwrap();
        let mut is_fix = true;
        for part in text.split("\n#").skip(1) {
            if part.starts_with("# ") {
                is_fix = part.starts_with("# Fixes");
                continue;
            }
            let name = part.lines().next().unwrap().trim_start_matches("## ");
            let expected = part.lines().find_map(|line| line.strip_prefix(EXPECTED));
            let (_, diff) = part.split_once("```diff\n").expect("a block of diff");
            let (diff, _) = diff.split_once("```").expect("the block's end");
            edits.push(Edit {
                chapter,
                name: name.to_owned(),
                is_fix,
                expected: expected.map(str::to_owned),
                diff: diff.to_owned(),
            });
        }
    }
    edits
}

#[test]
fn edits_apply_and_a_mistake_says_what_is_expected() {
    let edits = edits();
    for (chapter, _) in chapters() {
        for is_fix in [true, false] {
            let has_one = edits
                .iter()
                .any(|edit| edit.chapter == chapter && edit.is_fix == is_fix);
            assert!(
                has_one,
                "chapter {chapter} has no edit with is_fix: {is_fix}"
            );
        }
    }
    for edit in edits {
        edit.apply(&root(), "apply --unidiff-zero --check");
        assert_eq!(edit.expected.is_none(), edit.is_fix, "{}", edit.name);
    }
}

/// In a copy of the workshop, whose build is kept for the next time.
#[test]
#[ignore = "takes an hour for all chapters; EDITS=1 grades those of chapter 1"]
fn every_edit_gets_its_grade() {
    let only = std::env::var("EDITS").ok();
    let only = only.map(|number| number.parse::<u32>().expect("EDITS is a chapter's number"));
    let folder = tempfile::tempdir().unwrap();
    let copy = clone_into(folder.path());
    let mut wrong = Vec::new();
    for edit in edits() {
        if only.is_some_and(|only| only != edit.chapter) {
            continue;
        }
        succeed(command("git", "checkout --quiet -- .").current_dir(&copy));
        edit.apply(&copy, "apply --unidiff-zero");
        let said = verdicts::ask(&format!("check {}", edit.chapter), |cargo| {
            cargo.current_dir(&copy);
            cargo.env("CARGO_TARGET_DIR", root().join("target/edits"));
        });
        let text = |key: &str| said[key].as_str().unwrap_or_default();
        let (verdict, reason) = (text("verdict"), text("reason"));
        let is_right = match &edit.expected {
            None => verdict == "passed",
            Some(expected) => verdict == "failed" && reason.contains(expected.as_str()),
        };
        println!(
            "{} {verdict}: {reason}",
            if is_right { "ok   " } else { "WRONG" }
        );
        if !is_right {
            wrong.push(format!(
                "chapter {}: {}: {verdict}: {reason}",
                edit.chapter, edit.name
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
