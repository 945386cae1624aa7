//! `cargo workshop capstone changes`: lists changed files that must stay as they were shipped.

use std::collections::BTreeMap;

use terminal::exit::{CliError, Exit};
use terminal::git::Git;

use crate::shipped::Shipped;
use crate::shop::Shop;

/// Files of the shop that stay as they were shipped.
const STAY: [&str; 3] = [
    "capstone/tests/",
    "capstone/src/bin/payments.rs",
    "capstone/src/seed.rs",
];
/// Folders of the code that measures the score.
const SCORING: [&str; 3] = ["crates", "instruments", "Cargo.toml"];

/// Compares the shop of a commit, or the one in the working tree, with the shipped one.
///
/// # Errors
///
/// Returns an error if there is no such commit.
pub fn run(shop: &Shop, commit: Option<&str>) -> Result<Exit, CliError> {
    let git = Git::within(shop.root());
    let shipped = Shipped::read(shop)?;
    let mut changed = Vec::new();
    let theirs = match commit {
        Some(commit) => {
            // The scores come from the organizer's own clone.
            let words = ["diff", "--name-only", "HEAD", commit, "--"];
            let differ = git.say(words.into_iter().chain(SCORING))?;
            changed.extend(differ.lines().map(str::to_owned));
            Shipped::in_commit(&git, commit)?.blobs
        }
        None => Shipped::lying_here(&git, shop.root())?,
    };
    changed.extend(differing(&shipped.blobs, &theirs));
    if changed.is_empty() {
        println!("No file is changed that must stay as it was shipped.");
        return Ok(Exit::Good);
    }
    Err(CliError::bad(format!(
        "these files must stay as they were shipped, and they are changed: {}",
        changed.join(", ")
    )))
}

/// Files that stay by the rules, and that were changed, removed or added.
fn differing(shipped: &BTreeMap<String, String>, theirs: &BTreeMap<String, String>) -> Vec<String> {
    let mut differing = Vec::new();
    for path in shipped.keys().chain(theirs.keys()) {
        let stays = STAY.iter().any(|stay| path.starts_with(stay));
        if stays && shipped.get(path) != theirs.get(path) && !differing.contains(path) {
            differing.push(path.clone());
        }
    }
    differing
}
