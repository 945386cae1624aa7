//! The step-by-step branches of the real chapters: each commit is a service that compiles and keeps its contract.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use course::measurement::chapter_file::ChapterFile;

use crate::{cargo, chapters, clone_into, command, root, succeed, turn, workshop};

/// The variants of a chapter's steps, in order.
fn steps(folder: &Path) -> Vec<String> {
    let file = folder.join("chapter.toml");
    let chapter = ChapterFile::read(&file, &file.to_string_lossy(), 2).unwrap();
    let variants = chapter
        .steps
        .iter()
        .map(|step| step.variant.replace('-', "_"));
    variants.collect()
}

/// Returns whether a file has an item of this name, or imports one for others.
fn declares(code: &str, name: &str) -> bool {
    let words = code.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let has_item = words
        .windows(2)
        .any(|pair| matches!(pair[0], "fn" | "struct" | "enum" | "type") && pair[1] == name);
    has_item || code.contains(&format!("::{name};"))
}

/// A step's code takes the place of `exercise.rs`, so it has to offer what `main.rs` takes from there.
#[test]
fn a_step_offers_what_the_exercise_does() {
    for (number, folder) in chapters() {
        let read = |file: &str| fs::read_to_string(folder.join("src").join(file)).unwrap();
        let main = read("main.rs");
        let mut wanted = BTreeSet::new();
        for use_of_it in main.split("exercise::").skip(1) {
            let name = use_of_it.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
            wanted.extend(name.take(1));
        }
        for step in steps(&folder) {
            let code = read(&format!("{step}.rs"));
            for name in &wanted {
                assert!(
                    declares(&code, name),
                    "chapter {number}: the step {step} has no `{name}`, which main.rs asks for"
                );
            }
        }
    }
}

#[test]
fn no_two_steps_of_a_branch_have_the_same_code() {
    for (number, folder) in chapters() {
        let mut seen = BTreeSet::new();
        for step in steps(&folder) {
            let code = fs::read_to_string(folder.join(format!("src/{step}.rs"))).unwrap();
            assert!(
                seen.insert(code),
                "chapter {number}: the step {step} has the code of one before it"
            );
        }
    }
}

#[test]
#[ignore = "compiles each chapter once for every step: ten minutes"]
fn weekly_every_step_compiles_and_keeps_its_contract() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let copy = clone_into(folder.path());
    succeed(workshop("steps").current_dir(&copy));
    let git = |words: &str| succeed(command("git", words).current_dir(&copy));
    let head = git("rev-parse HEAD");
    for (number, folder) in chapters() {
        let branch = format!("steps/chapter{number}");
        let contract = fs::read_to_string(folder.join("tests/contract.rs")).unwrap();
        let commits = git(&format!("rev-list --reverse {}..{branch}", head.trim()));
        let steps = steps(&folder);
        let mut trees = BTreeSet::new();
        for (commit, step) in commits.lines().zip(&steps) {
            git(&format!("checkout --quiet --detach {commit}"));
            let tree = git("rev-parse HEAD^{tree}");
            assert!(trees.insert(tree), "{branch} has a tree twice");
            // A step that the contract does not list has a hole, which the next one closes: it only has to compile.
            let variant = format!("\"{}\"", step.replace('_', "-"));
            let words = if contract.contains(&variant) {
                format!("test --package chapter{number} --test contract -- --skip of_a_fix")
            } else {
                format!("build --package chapter{number}")
            };
            let mut test = cargo(&words);
            test.current_dir(&copy).env("VARIANT", "exercise");
            succeed(test.env("CARGO_TARGET_DIR", root().join("target/edits")));
        }
        assert_eq!(trees.len(), steps.len(), "{branch}");
    }
}
