//! The step-by-step branches: `steps/chapterN`, a commit a step.
//!
//! A step's tree is the tree of the commit that the branch stands on (HEAD,
//! usually) with `exercise.rs` holding the step's variant as it is committed
//! there. So every step compiles in place, `git log -p main..steps/chapter1`
//! shows what changes from step to step and nothing else, and no step holds a
//! line that is not in the directories.
//!
//! The branch stands on HEAD, not on a root of its own: a reader can compare
//! and merge it, and a shallow clone holds all that it needs. Identity and
//! dates are fixed (HEAD's date, a second a step): same HEAD, same commits.

mod branches;
mod message;

use measurement::chapter_file::{ChapterFile, Step};
use serde::Serialize;

pub(crate) use self::branches::{Change, update};
use crate::exit::CliError;
use crate::git::Git;

/// Author and committer of every step, by which they are known again.
const NAME: &str = "Profiling workshop";
/// A name that no mail server can have (RFC 2606).
const MAIL: &str = "steps@workshop.invalid";

/// One chapter's branch as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Branch {
    pub(crate) chapter: u32,
    /// `steps/chapter1`.
    #[serde(rename = "branch")]
    pub(crate) name: String,
    /// The commit that it stands on.
    pub(crate) base: String,
    /// In order; never empty.
    pub(crate) steps: Vec<StepCommit>,
}

/// One step as a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct StepCommit {
    pub(crate) commit: String,
    pub(crate) name: String,
    /// The variant whose code it carries.
    pub(crate) variant: String,
}

/// Writes the commits of all chapters at HEAD into the repository's object
/// store. No branch, index or file is touched.
pub(crate) fn generate(git: &Git) -> Result<Vec<Branch>, CliError> {
    let head = git
        .ask(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])
        .ok_or_else(|| {
            CliError::usage("the repository has no commit yet: commit something first")
        })?;
    let base = branches::beneath_steps(git, &head)?;
    let index = tempfile::tempdir()
        .map_err(|e| CliError::bad(format!("a temporary folder cannot be made: {e}")))?;
    let mut branches = Vec::new();
    for folder in chapter_folders(git, &base)? {
        let shown_as = format!("{folder}/chapter.toml");
        let Some(text) = git.ask(["cat-file", "blob", &format!("{base}:{shown_as}")]) else {
            continue;
        };
        let chapter = ChapterFile::parse(&text, &shown_as).map_err(CliError::usage)?;
        let private = git.with(&[("GIT_INDEX_FILE", index.path().join("index"))]);
        branches.extend(branch(&private, &base, &folder, &chapter)?);
    }
    Ok(branches)
}

/// `chapters/1-mutex-held-across-await`, …, as they are committed.
fn chapter_folders(git: &Git, base: &str) -> Result<Vec<String>, CliError> {
    let listed = git.say(["ls-tree", "-d", "--name-only", base, "chapters/"])?;
    Ok(listed.lines().map(str::to_owned).collect())
}

fn branch(
    git: &Git,
    base: &str,
    folder: &str,
    chapter: &ChapterFile,
) -> Result<Option<Branch>, CliError> {
    let date: i64 = git
        .say(["show", "--no-patch", "--format=%ct", base])?
        .parse()
        .map_err(|e| CliError::bad(format!("git gave a date that is none: {e}")))?;
    let measured = message::Measured::read(git, base, chapter.chapter);
    let mut parent = base.to_owned();
    let mut steps = Vec::new();
    for (number, step) in (1..).zip(&chapter.steps) {
        let tree = tree(git, base, folder, step)?;
        let text = message::compose(chapter, number, step, measured.as_ref());
        let commit = commit(git, &tree, &parent, date + number, &text)?;
        parent.clone_from(&commit);
        steps.push(StepCommit {
            commit,
            name: step.name.clone(),
            variant: step.variant.clone(),
        });
    }
    Ok((!steps.is_empty()).then(|| Branch {
        chapter: chapter.chapter,
        name: format!("steps/{}", chapter.package),
        base: base.to_owned(),
        steps,
    }))
}

/// The base's tree with the step's variant in the exercise's place.
fn tree(git: &Git, base: &str, folder: &str, step: &Step) -> Result<String, CliError> {
    let source = format!("{folder}/src/{}.rs", step.variant);
    let blob = git
        .ask([
            "rev-parse",
            "--verify",
            "--quiet",
            &format!("{base}:{source}"),
        ])
        .ok_or_else(|| {
            CliError::usage(format!(
                "{folder}/chapter.toml has a step `{}` with the variant `{}`, but {source} is not \
                 committed",
                step.name, step.variant
            ))
        })?;
    git.say(["read-tree", base])?;
    let entry = format!("100644,{blob},{folder}/src/exercise.rs");
    git.say(["update-index", "--add", "--cacheinfo", &entry])?;
    git.say(["write-tree"])
}

fn commit(git: &Git, tree: &str, parent: &str, date: i64, text: &str) -> Result<String, CliError> {
    let date = format!("@{date} +0000");
    let identified = git.with(&[
        ("GIT_AUTHOR_NAME", NAME),
        ("GIT_AUTHOR_EMAIL", MAIL),
        ("GIT_AUTHOR_DATE", &date),
        ("GIT_COMMITTER_NAME", NAME),
        ("GIT_COMMITTER_EMAIL", MAIL),
        ("GIT_COMMITTER_DATE", &date),
    ]);
    let hash = identified.run(["commit-tree", tree, "-p", parent], text)?;
    Ok(hash.trim().to_owned())
}
