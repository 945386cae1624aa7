//! The step-by-step branches: `steps/chapterN`, a commit a step; and `steps/capstone`, see [`way`].
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
mod step;
pub(crate) mod way;

use course::measurement::chapter_file::ChapterFile;

pub(crate) use self::step::{Branch, Change};
use self::step::{MAIL, NAME, StepCommit, beneath_steps, chapter_folders, tree};
use terminal::exit::CliError;
use terminal::files;
use terminal::git::Git;

/// The subject of a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    /// The chapter of this number.
    Chapter(u32),
    /// The reference way through the ticket shop, which holds all of its fixes.
    Capstone,
}

/// Writes the branch of `of` at HEAD, or those of all chapters. The reader's files, index and other branches are not
/// touched.
pub(crate) fn write(git: &Git, of: Option<Of>) -> Result<Vec<Branch>, CliError> {
    let Some(head) = git.ask(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]) else {
        return Err(CliError::usage(
            "the repository has no commit yet: commit something first",
        ));
    };
    let base = beneath_steps(git, &head)?;
    let index = files::temporary()?;
    let git = git.with(&[("GIT_INDEX_FILE", index.path().join("index"))]);
    let mut branches = Vec::new();
    if of == Some(Of::Capstone) {
        branches.extend(way::branch(&git, &base)?);
    } else {
        for folder in chapter_folders(&git, &base)? {
            let shown_as = format!("{folder}/chapter.toml");
            let Some(text) = git.ask(["cat-file", "blob", &format!("{base}:{shown_as}")]) else {
                continue;
            };
            let chapter = ChapterFile::parse(&text, &shown_as, children::cpus::count())
                .map_err(CliError::usage)?;
            if of.is_none_or(|of| of == Of::Chapter(chapter.chapter)) {
                branches.extend(branch(&git, &base, &folder, &chapter)?);
            }
        }
    }
    branches::update(&git, &mut branches)?;
    Ok(branches)
}

fn branch(
    git: &Git,
    base: &str,
    folder: &str,
    chapter: &ChapterFile,
) -> Result<Option<Branch>, CliError> {
    let date = date(git, base)?;
    let measured = message::Measured::read(git, base, chapter);
    let mut parent = base.to_owned();
    let mut steps = Vec::new();
    let total = chapter.steps.len();
    for (number, step) in (1..).zip(&chapter.steps) {
        let variant = &step.variant;
        let Some(tree) = tree(git, base, folder, variant)? else {
            return Err(CliError::usage(format!(
                "{folder}/chapter.toml has a step `{}` with the variant `{variant}`, but \
                 {folder}/src/{variant}.rs is not committed",
                step.name
            )));
        };
        let text = message::compose(chapter, (number, total), step, measured.as_ref());
        let commit = commit(git, &tree, &parent, date + number, &text)?;
        parent.clone_from(&commit);
        steps.push(StepCommit {
            commit,
            name: step.name.clone(),
            variant: variant.clone(),
        });
    }
    if steps.is_empty() {
        return Ok(None);
    }
    Ok(Some(Branch {
        chapter: Some(chapter.chapter),
        name: format!("steps/{}", chapter.package),
        base: base.to_owned(),
        steps,
        change: Change::Unchanged,
    }))
}

/// Time of a commit, in seconds since 1970.
fn date(git: &Git, commit: &str) -> Result<i64, CliError> {
    git.say(["show", "--no-patch", "--format=%ct", commit])?
        .parse()
        .map_err(CliError::because("git gave a date that is none"))
}

/// A commit of ours that no branch has yet.
pub(crate) fn commit(
    git: &Git,
    tree: &str,
    parent: &str,
    date: i64,
    text: &str,
) -> Result<String, CliError> {
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
