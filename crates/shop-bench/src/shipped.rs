//! The shop as it was shipped: `shipped.txt`, a line of `git ls-tree` for each file.

use std::collections::BTreeMap;
use std::path::Path;

use terminal::exit::CliError;
use terminal::git::Git;

use crate::reading::read_if_there;
use crate::shop::Shop;

/// Path of the list, from the workshop's folder.
pub const LIST: &str = "crates/shop-bench/shipped.txt";
/// Files that no shop is made of, and that a reset leaves alone.
pub const REFERENCE: &str = "capstone/reference/";

/// Files of the shipped shop.
#[derive(Debug, PartialEq, Eq)]
pub struct Shipped {
    /// The list, as `git update-index --index-info` takes it.
    pub list: String,
    /// Blobs by path, from the workshop's folder.
    pub blobs: BTreeMap<String, String>,
}

impl Shipped {
    /// Reads the list of a workshop.
    ///
    /// # Errors
    ///
    /// Returns an error if there is none.
    pub fn read(shop: &Shop) -> Result<Self, CliError> {
        let text = read_if_there(&shop.root().join(LIST)).map_err(CliError::because(LIST))?;
        let Some(text) = text else {
            return Err(CliError::usage(format!(
                "{LIST} is missing: it says how the shop was shipped"
            )));
        };
        Ok(Self::of(text))
    }

    /// The files of a commit.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such commit.
    pub fn in_commit(git: &Git, commit: &str) -> Result<Self, CliError> {
        Ok(Self::of(
            git.say(["ls-tree", "-r", commit, "--", "capstone"])?,
        ))
    }

    fn of(text: String) -> Self {
        let mut blobs = BTreeMap::new();
        // `100644 blob ID<tab>PATH`
        for line in text.lines() {
            let Some((about, path)) = line.split_once('\t') else {
                continue;
            };
            if !path.starts_with(REFERENCE) {
                let blob = about.rsplit(' ').next().unwrap_or_default();
                blobs.insert(path.to_owned(), blob.to_owned());
            }
        }
        Self { list: text, blobs }
    }

    /// The files as they lie there, ignored ones left out.
    ///
    /// # Errors
    ///
    /// Returns an error if git refuses.
    pub fn lying_here(git: &Git, root: &Path) -> Result<BTreeMap<String, String>, CliError> {
        let listed = git.say([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
            "--",
            "capstone",
        ])?;
        let mut paths = Vec::new();
        for path in listed.split_terminator('\0') {
            if !path.starts_with(REFERENCE) && root.join(path).is_file() {
                paths.push(path);
            }
        }
        paths.sort_unstable();
        paths.dedup();
        let mut here = BTreeMap::new();
        if paths.is_empty() {
            return Ok(here);
        }
        let blobs = git.run(["hash-object", "--stdin-paths"], &(paths.join("\n") + "\n"))?;
        for (path, blob) in paths.into_iter().zip(blobs.lines()) {
            here.insert(path.to_owned(), blob.to_owned());
        }
        Ok(here)
    }
}
