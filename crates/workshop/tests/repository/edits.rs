//! Each chapter's edits of its exercise, `chapters/N-name/edits`: right fixes of different kinds, which
//! `check` must pass, and mistakes that people make, which it must fail with the sentence that the patch
//! names.
//!
//!     cargo test -p workshop --test repository edits        do all patches apply?
//!     EDITS=1 .ci/run every_edit                            grade those of chapter 1

use std::fs;
use std::path::{Path, PathBuf};

use crate::{chapters, command, root, succeed, verdicts};

/// The line of a mistake's patch that says what the grade's reason contains.
const EXPECTED: &str = "Expected: ";

struct Edit {
    chapter: u32,
    patch: PathBuf,
    is_fix: bool,
    /// Words that the reason of a mistake's grade must contain.
    expected: Option<String>,
}

fn edits() -> Vec<Edit> {
    let mut edits = Vec::new();
    for (chapter, folder) in chapters() {
        for kind in ["fixes", "mistakes"] {
            let patches = fs::read_dir(folder.join("edits").join(kind)).unwrap();
            let mut patches: Vec<PathBuf> = patches.map(|entry| entry.unwrap().path()).collect();
            patches.sort();
            for patch in patches {
                let text = fs::read_to_string(&patch).unwrap();
                let expected = text.lines().find_map(|line| line.strip_prefix(EXPECTED));
                edits.push(Edit {
                    chapter,
                    is_fix: kind == "fixes",
                    expected: expected.map(str::to_owned),
                    patch,
                });
            }
        }
    }
    edits
}

/// `git WORDS` in a folder, of the file `patch` if one is named.
fn git(folder: &Path, words: &str, patch: Option<&Path>) {
    succeed(command("git", words).args(patch).current_dir(folder));
}

#[test]
fn patches_apply_and_a_mistake_says_what_is_expected() {
    for edit in edits() {
        git(&root(), "apply --check --unidiff-zero", Some(&edit.patch));
        assert_eq!(edit.expected.is_none(), edit.is_fix, "{:?}", edit.patch);
    }
}

/// In a copy of the workshop, whose build is kept for the next time.
#[test]
#[ignore = "takes an hour for all chapters; EDITS=1 grades those of chapter 1"]
fn every_edit_gets_its_grade() {
    let only = std::env::var("EDITS").ok();
    let only = only.map(|number| number.parse::<u32>().expect("EDITS is a chapter's number"));
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("workshop");
    git(&root(), "clone --quiet .", Some(&copy));
    let mut wrong = Vec::new();
    for edit in edits() {
        if only.is_some_and(|only| only != edit.chapter) {
            continue;
        }
        git(&copy, "checkout --quiet -- .", None);
        git(&copy, "apply --unidiff-zero", Some(&edit.patch));
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
        let shown = edit.patch.strip_prefix(root()).unwrap().display();
        println!(
            "{} {shown}: {verdict}: {reason}",
            if is_right { "ok   " } else { "WRONG" }
        );
        if !is_right {
            wrong.push(format!("{shown}: {verdict}: {reason}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
