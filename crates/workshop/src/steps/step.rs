//! A branch and its steps, and the tree that a step has.

use serde::Serialize;

use super::message::TRAILER;
use terminal::exit::CliError;
use terminal::git::Git;

/// Author and committer of every step, by which they are known again.
pub(super) const NAME: &str = "Profiling workshop";
/// A name that no mail server can have (RFC 2606).
pub(super) const MAIL: &str = "steps@workshop.invalid";

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Branch {
    /// `None` of the capstone's.
    pub(crate) chapter: Option<u32>,
    /// `steps/chapter1`.
    #[serde(rename = "branch")]
    pub(crate) name: String,
    /// The commit that it stands on.
    pub(crate) base: String,
    /// In order; never empty.
    pub(crate) steps: Vec<StepCommit>,
    pub(crate) change: Change,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct StepCommit {
    pub(crate) commit: String,
    pub(crate) name: String,
    /// The variant whose code it carries; of the capstone, the change.
    pub(crate) variant: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Change {
    Created,
    Updated,
    Unchanged,
}

/// `chapters/1-mutex-held-across-await`, …, as they are committed.
pub(super) fn chapter_folders(git: &Git, base: &str) -> Result<Vec<String>, CliError> {
    let listed = git.say(["ls-tree", "-d", "--name-only", base, "chapters/"])?;
    Ok(listed.lines().map(str::to_owned).collect())
}

/// The base's tree with a variant in the exercise's place, written with the index that `git` is
/// told to use; `None` for a variant that is not committed there.
pub(super) fn tree(
    git: &Git,
    base: &str,
    folder: &str,
    variant: &str,
) -> Result<Option<String>, CliError> {
    // A module's name has no hyphen.
    let module = variant.replace('-', "_");
    let source = format!("{base}:{folder}/src/{module}.rs");
    let Some(blob) = git.ask(["rev-parse", "--verify", "--quiet", &source]) else {
        return Ok(None);
    };
    git.say(["read-tree", base])?;
    let entry = format!("100644,{blob},{folder}/src/exercise.rs");
    git.say(["update-index", "--add", "--cacheinfo", &entry])?;
    git.say(["write-tree"]).map(Some)
}

/// The first commit at or below `commit` that is no step: what a branch stands on, also when a
/// step is checked out.
pub(super) fn beneath_steps(git: &Git, commit: &str) -> Result<String, CliError> {
    let is_step = format!("--grep=^{TRAILER}");
    git.say([
        "rev-list",
        "--first-parent",
        "--max-count=1",
        "--invert-grep",
        &is_step,
        commit,
    ])
}
