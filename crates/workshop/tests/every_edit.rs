//! Each chapter's edits of its exercise, `chapters/N-name/edits`: right fixes of different kinds, which
//! `check` must pass, and mistakes that people make, which it must fail with the sentence that the patch
//! names.
//!
//!     cargo test -p workshop --test every_edit                     do all patches apply?
//!     EDITS=1 cargo test -p workshop --test every_edit -- --ignored   grade those of chapter 1

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// The line of a mistake's patch that says what the grade's reason contains.
const EXPECTED: &str = "Expected: ";
/// A busy machine may make a run invalid: it says nothing, and is repeated.
const ATTEMPTS: u32 = 3;

struct Edit {
    chapter: u32,
    patch: PathBuf,
    is_fix: bool,
    /// What the reason of a mistake's grade must contain.
    expected: Option<String>,
}

fn root() -> &'static Path {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    root.expect("the workshop's root")
}

fn edits() -> Vec<Edit> {
    let mut edits = Vec::new();
    for folder in files_in(&root().join("chapters")) {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let number = name
            .split('-')
            .next()
            .and_then(|number| number.parse().ok());
        for kind in ["fixes", "mistakes"] {
            for patch in files_in(&folder.join("edits").join(kind)) {
                let text = fs::read_to_string(&patch).expect("a patch");
                let expected = text.lines().find_map(|line| line.strip_prefix(EXPECTED));
                edits.push(Edit {
                    chapter: number.expect("chapters/N-name"),
                    is_fix: kind == "fixes",
                    expected: expected.map(str::to_owned),
                    patch,
                });
            }
        }
    }
    edits
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let paths = entries.map(|entry| entry.unwrap().path());
    let is_shown = |path: &PathBuf| !path.file_name().unwrap().to_string_lossy().starts_with('.');
    let mut files: Vec<PathBuf> = paths.filter(is_shown).collect();
    files.sort();
    files
}

fn run(command: &mut Command) -> Output {
    let output = command.stdin(Stdio::null()).output();
    output.unwrap_or_else(|e| panic!("{}: {e}", command.get_program().display()))
}

fn git(folder: &Path, arguments: &[&str]) {
    let output = run(Command::new("git").arg("-C").arg(folder).args(arguments));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {arguments:?}: {said}");
}

#[test]
fn patches_apply_and_a_mistake_says_what_is_expected() {
    for edit in edits() {
        let patch = edit.patch.to_str().expect("a plain path");
        git(root(), &["apply", "--check", "--unidiff-zero", patch]);
        assert_eq!(edit.expected.is_none(), edit.is_fix, "{patch}");
    }
}

/// In a copy of the workshop, whose build is kept for the next time.
#[test]
#[ignore = "takes an hour for all chapters; EDITS=1 grades those of chapter 1"]
fn every_edit_gets_its_grade() {
    let only = std::env::var("EDITS").ok();
    let only = only.map(|number| number.parse::<u32>().expect("EDITS is a chapter's number"));
    let copy = tempfile::tempdir().expect("a folder");
    let copy = copy.path().join("workshop");
    git(root(), &["clone", "--quiet", ".", copy.to_str().unwrap()]);
    let target = root().join("target/edits");
    let mut wrong = Vec::new();
    for edit in edits() {
        if only.is_some_and(|only| only != edit.chapter) {
            continue;
        }
        let patch = edit.patch.to_str().expect("a plain path");
        git(&copy, &["checkout", "--quiet", "--", "."]);
        git(&copy, &["apply", "--unidiff-zero", patch]);
        let (verdict, reason) = grade(&copy, &target, edit.chapter);
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

fn grade(copy: &Path, target: &Path, chapter: u32) -> (String, String) {
    let mut last = (String::new(), String::new());
    for _ in 0..ATTEMPTS {
        let output = run(Command::new(env!("CARGO"))
            .current_dir(copy)
            .env("CARGO_TARGET_DIR", target)
            .args([
                "workshop",
                "check",
                &chapter.to_string(),
                "--format",
                "json",
            ]));
        let json: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&output.stderr)));
        let text = |key: &str| json[key].as_str().unwrap_or_default().to_owned();
        last = (text("verdict"), text("reason"));
        if last.0 != "invalid" {
            break;
        }
    }
    last
}
