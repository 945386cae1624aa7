//! The reference way: its patches apply one after the other, each fault applies to its end, and its pictures show what
//! their messages cite.
//!
//! A change of `capstone/src` moves the lines that patches stand on. Commit it, then
//! `UPDATE_EXPECT=1 cargo test -p shop-bench --test reference way` writes all patches anew: it makes the old chain where
//! it last applied, so that git has each blob, and merges it into the shop of today, change by change.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::faults::rows;
use super::{command, patches, root, run, succeed};

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

    /// Writes the trees after each change of the way: the last one is its end.
    fn chain(&self, base: &str, how: &str) -> Vec<String> {
        let mut trees = vec![base.to_owned()];
        for change in patches("way") {
            let before = &trees[trees.len() - 1];
            let Some(tree) = self.apply(before, &change, how) else {
                panic!("{}", refused(&change));
            };
            trees.push(tree);
        }
        trees
    }
}

/// Says what to do about a patch that does not apply.
fn refused(patch: &Path) -> String {
    format!(
        "{} does not apply any more. Commit your change of the shop, then run UPDATE_EXPECT=1 cargo test -p \
         shop-bench --test reference way; it stops here again if both changed the same lines: then edit the patch",
        patch.display()
    )
}

/// Replaces the diff of a patch and keeps the message before it.
fn rewrite(index: &Index, patch: &Path, before: &str, after: &str) {
    let text = fs::read_to_string(patch).unwrap();
    let message = match text.split_once("diff --git ") {
        Some((message, _)) => message,
        None => &text,
    };
    let mut diff = index.git("diff --full-index");
    let diff = succeed(diff.args([before, after]));
    fs::write(patch, format!("{message}{diff}")).unwrap();
}

/// Merges all patches into the shop as it is committed, and writes them anew.
fn write_anew() {
    let index = Index::new();
    let git = |words: &str| succeed(&mut index.git(words)).trim().to_owned();
    let last = git("log -1 --format=%H -- capstone/reference/*/*.patch");
    let end = index.chain(&last, "").pop().unwrap();
    for fault in patches("faults") {
        index.apply(&end, &fault, "");
    }

    let trees = index.chain("HEAD", "--3way");
    for (place, change) in patches("way").iter().enumerate() {
        rewrite(&index, change, &trees[place], &trees[place + 1]);
    }
    let end = &trees[trees.len() - 1];
    for fault in patches("faults") {
        let Some(tree) = index.apply(end, &fault, "--3way") else {
            panic!("{}", refused(&fault));
        };
        rewrite(&index, &fault, end, &tree);
    }
}

#[test]
fn the_way_applies_and_every_fault_can_be_put_back_into_its_end() {
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        write_anew();
    }
    let index = Index::new();
    let end = index.chain("HEAD", "").pop().unwrap();
    let mut faults = BTreeSet::new();
    for fault in patches("faults") {
        assert!(
            index.apply(&end, &fault, "").is_some(),
            "{}",
            refused(&fault)
        );
        faults.insert(fault.file_stem().unwrap().to_str().unwrap().to_owned());
    }
    let mut of_rows = BTreeSet::new();
    for row in rows() {
        assert!(!row.seen.is_empty(), "{}: nothing shows it", row.fault);
        of_rows.insert(row.fault);
    }
    assert_eq!(of_rows, faults, "each is a row of faults.md");
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
fn a_picture_of_the_way_shows_what_its_message_cites() {
    let mut wrong = Vec::new();
    for patch in patches("way") {
        let picture: PathBuf = patch.with_extension("svg");
        let Ok(drawing) = fs::read_to_string(&picture) else {
            continue;
        };
        let text = fs::read_to_string(&patch).unwrap();
        let (message, _) = text.split_once("\ndiff --git ").unwrap();
        let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
        let places = places(&message);
        let shows = |words: &String| drawing.contains(words.as_str());
        let is_right = if places.is_empty() {
            names(&message).iter().any(shows)
        } else {
            places.iter().all(shows)
        };
        if !is_right {
            let name = picture.strip_prefix(root()).unwrap().display().to_string();
            wrong.push(format!("{name} shows none or not all of {places:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
