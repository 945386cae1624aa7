//! Wrong shops: the contract refuses each with a sentence that names the rule.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wrong {
    /// Words of the sentence.
    says: String,
    edits: Vec<Edit>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    file: String,
    from: String,
    to: String,
}

impl Wrong {
    /// Files with the shop's mistake, by path below `capstone/src`.
    fn files(&self) -> BTreeMap<&str, String> {
        let mut files = BTreeMap::new();
        for Edit { file, from, to } in &self.edits {
            let shipped = || fs::read_to_string(root().join("capstone/src").join(file)).unwrap();
            let text = files.entry(file.as_str()).or_insert_with(shipped);
            let times = text.matches(from.as_str()).count();
            assert_eq!(times, 1, "{file} has this {times} times: {from}");
            *text = text.replace(from.as_str(), to);
        }
        files
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn wrong_shops() -> BTreeMap<String, Wrong> {
    let text = fs::read_to_string(root().join("capstone/reference/wrong.toml")).unwrap();
    toml::from_str(&text).unwrap()
}

#[test]
fn every_mistake_can_be_made_in_the_shipped_shop() {
    let wrong_shops = wrong_shops();
    assert!(wrong_shops.len() >= 12);
    for wrong in wrong_shops.values() {
        assert!(!wrong.files().is_empty());
    }
}

/// `WRONG=no-pages,old-list` tries these alone.
#[test]
#[ignore = "needs half an hour, to compile the shop with each of its mistakes"]
fn weekly_the_contract_refuses_each_wrong_shop_by_its_rule() {
    let folder = root().join("capstone/target/wrong");
    copy(&folder);
    let only = std::env::var("WRONG").unwrap_or_default();
    let mut unseen = Vec::new();
    for (name, wrong) in wrong_shops() {
        if !only.is_empty() && !only.split(',').any(|one| one == name) {
            continue;
        }
        let files = wrong.files();
        for (file, text) in &files {
            fs::write(folder.join("src").join(file), text).unwrap();
        }
        let said = contract(&folder);
        for file in files.keys() {
            let shipped = root().join("capstone/src").join(file);
            fs::copy(shipped, folder.join("src").join(file)).unwrap();
        }
        if !said.contains(&wrong.says) {
            unseen.push(format!("{name} is not refused by `{}`: {said}", wrong.says));
        }
    }
    assert!(unseen.is_empty(), "{}", unseen.join("\n\n"));
}

/// Copies the shop to a folder of its own, which cargo builds with the shop's dependencies.
fn copy(folder: &Path) {
    let list = Command::new("git")
        .args(["ls-files", "--", "capstone", ":!capstone/reference"])
        .current_dir(root())
        .output()
        .unwrap();
    for path in String::from_utf8(list.stdout).unwrap().lines() {
        let to = folder.join(path.strip_prefix("capstone/").unwrap());
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(root().join(path), to).unwrap();
    }
    fs::write(folder.join("Cargo.toml"), elsewhere("../../..")).unwrap();
}

/// The shop's `Cargo.toml` for a copy elsewhere: one line is changed, and says so.
fn elsewhere(clone: &str) -> String {
    let mut changed = 0;
    let mut lines = Vec::new();
    let text = fs::read_to_string(root().join("capstone/Cargo.toml")).unwrap();
    for line in text.lines() {
        if line.contains("../") {
            assert!(
                lines
                    .last()
                    .is_some_and(|said: &String| said.contains("in a copy elsewhere"))
            );
            changed += 1;
        }
        lines.push(line.replace("\"..", &format!("\"{clone}")));
    }
    assert_eq!(changed, 1, "lines that leave the folder");
    lines.join("\n") + "\n"
}

#[test]
fn a_copy_elsewhere_needs_one_line_changed_which_says_so() {
    assert!(elsewhere("/clone").contains("path = \"/clone/instruments/debug-endpoints\""));
}

/// Runs the contract, and returns what it printed.
fn contract(folder: &Path) -> String {
    let mut test = Command::new(env!("CARGO"));
    // What is judged is no time, and the program compiles quicker so.
    test.args(["test", "--quiet", "--test", "contract", "--no-fail-fast"])
        .args(["--config", "profile.dev.package.capstone.opt-level=1"])
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", root().join("capstone/target"))
        .env("RUST_BACKTRACE", "0");
    children::forget_package(&mut test);
    let output = test.output().unwrap();
    assert!(!output.status.success(), "the contract holds");
    let said = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    said.concat()
}
