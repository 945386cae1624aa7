//! The reference way: its commits apply to the shop, each fault applies to its end, and its pictures show what the
//! commits cite.
//!
//! A change of `capstone/src` moves the lines that they stand on. Commit it, then
//! `UPDATE_EXPECT=1 cargo test -p shop-bench --test reference way` rebases the way and the faults onto it, and writes
//! `commits.mbox` and the patches anew.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use super::faults::rows;
use super::{FAULTS, WAY, command, files, root, run, succeed};

/// Where the way is rebased; it stays there while a conflict is resolved by hand.
const REBASED: &str = "capstone/target/way";

/// An index of its own, so that the reader's stays as it is.
struct Index(TempDir);

impl Index {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Prepares git with this index.
    fn git(&self, words: &str) -> Command {
        let mut git = command("git", words);
        git.env("GIT_INDEX_FILE", self.0.path().join("index"));
        git
    }

    /// Writes the tree of this commit or tree with a patch; `None` where it does not apply.
    fn apply(&self, on: &str, patch: &Path, how: &str) -> Option<String> {
        succeed(&mut self.git(&format!("read-tree {on}")));
        let mut apply = self.git(&format!("apply --cached {how}"));
        if !run(apply.arg(patch)).status.success() {
            return None;
        }
        Some(succeed(&mut self.git("write-tree")).trim().to_owned())
    }
}

/// Says what to do about a patch that does not apply.
fn refused(patch: &Path) -> String {
    format!(
        "{} does not apply any more. Commit your change of the shop, then run UPDATE_EXPECT=1 cargo test -p \
         shop-bench --test reference way",
        patch.display()
    )
}

/// Prepares git in the folder where the way is rebased, as the one who wrote it.
fn git_there(words: &str) -> Command {
    let mut git = command("git", "-c core.hooksPath=/dev/null");
    git.args(words.split_whitespace())
        .current_dir(root().join(REBASED))
        .envs([
            ("GIT_COMMITTER_NAME", "Profiling workshop"),
            ("GIT_COMMITTER_EMAIL", "steps@workshop.invalid"),
            ("GIT_EDITOR", "true"),
        ]);
    git
}

/// Rebases the way and the faults from the commit that they were written for onto the shop of today.
fn write_anew() {
    let index = Index::new();
    let way = root().join(WAY);
    let last = succeed(command("git", "log -1 --format=%H --").args([WAY, FAULTS]));
    let last = last.trim();

    let there = root().join(REBASED);
    if !there.exists() {
        // git then has each blob that the patches name.
        let end = index.apply(last, &way, "").unwrap();
        for fault in files(FAULTS, "patch") {
            index.apply(&end, &fault, "");
        }
        succeed(&mut command(
            "git",
            &format!("worktree add --detach --quiet {REBASED} {last}"),
        ));
        succeed(git_there("am --quiet").arg(&way));
        let onto = succeed(&mut command("git", "rev-parse HEAD"));
        run(&mut git_there(&format!(
            "rebase --quiet --onto {onto} {last}"
        )));
    }
    let state = succeed(&mut git_there("status"));
    assert!(
        !state.contains("rebase in progress"),
        "the way and the shop changed the same lines: resolve this in {REBASED}, end with `git rebase --continue`, and \
         run this again. {state}"
    );
    let mailbox = succeed(&mut git_there(&format!(
        "format-patch --stdout --zero-commit --no-signature --no-stat --full-index --keep-subject {}..HEAD",
        succeed(&mut command("git", "rev-parse HEAD")).trim()
    )));
    fs::write(&way, mailbox).unwrap();
    let end = succeed(&mut git_there("rev-parse HEAD"));
    for fault in files(FAULTS, "patch") {
        let Some(tree) = index.apply(end.trim(), &fault, "--3way") else {
            panic!(
                "{} and the way changed the same lines: edit the patch",
                fault.display()
            );
        };
        let diff = succeed(index.git("diff --full-index").args([end.trim(), &tree]));
        fs::write(&fault, diff).unwrap();
    }
    succeed(&mut command(
        "git",
        &format!("worktree remove --force {REBASED}"),
    ));
}

#[test]
fn the_way_applies_and_every_fault_can_be_put_back_into_its_end() {
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        write_anew();
    }
    let index = Index::new();
    let way = root().join(WAY);
    let end = index.apply("HEAD", &way, "");
    let end = end.unwrap_or_else(|| panic!("{}", refused(&way)));
    let mut patches = BTreeSet::new();
    for fault in files(FAULTS, "patch") {
        assert!(
            index.apply(&end, &fault, "").is_some(),
            "{}",
            refused(&fault)
        );
        patches.insert(fault.file_stem().unwrap().to_str().unwrap().to_owned());
    }
    let mut of_rows = BTreeSet::new();
    for row in rows() {
        assert!(!row.seen.is_empty(), "{}: nothing shows it", row.fault);
        of_rows.insert(row.fault);
    }
    assert_eq!(of_rows, patches, "each is a row of faults.md");
}

/// A file of the shop with a line: `src/models/seat.rs:52`.
fn places(message: &str) -> BTreeSet<String> {
    let mut places = BTreeSet::new();
    for word in message.split_whitespace() {
        let word = word.trim_matches(|letter: char| !letter.is_alphanumeric());
        let is_line = |line: &str| line.parse::<u32>().is_ok();
        if word.starts_with("src/")
            && word
                .split_once(".rs:")
                .is_some_and(|(_, line)| is_line(line))
        {
            places.insert(word.to_owned());
        }
    }
    places
}

/// Functions and threads that a message names: `Seat::cheapest`. Instruments are quoted, too.
fn names(message: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for words in message.split('`').skip(1).step_by(2) {
        if !words.starts_with('/') && !["bench", "look"].contains(&words) {
            names.insert(words.to_owned());
        }
    }
    names
}

#[test]
fn a_picture_of_the_way_shows_what_the_paragraph_above_it_cites() {
    let mailbox = fs::read_to_string(root().join(WAY)).unwrap();
    let (mut wrong, mut cited) = (Vec::new(), BTreeSet::new());
    for paragraph in mailbox.split("\n\n") {
        let picture = paragraph.lines().last().unwrap_or_default();
        if Path::new(picture)
            .extension()
            .is_none_or(|end| end != "svg")
        {
            continue;
        }
        cited.insert(picture.to_owned());
        let drawing = fs::read_to_string(root().join(picture)).unwrap_or_default();
        let places = places(paragraph);
        let shows = |words: &String| drawing.contains(words.as_str());
        let is_right = if places.is_empty() {
            names(paragraph).iter().any(shows)
        } else {
            places.iter().all(shows)
        };
        if !is_right {
            wrong.push(format!("{picture} shows none or not all of {places:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let mut pictures = BTreeSet::new();
    for path in files("capstone/reference/way", "svg") {
        let path = path.strip_prefix(root()).unwrap();
        pictures.insert(path.display().to_string());
    }
    assert_eq!(cited, pictures, "each picture is cited by a commit");
}
