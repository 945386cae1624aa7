//! Which branches may be moved, and moving them: a reader's commits stay.

use serde::Serialize;

use super::message::TRAILER;
use super::{Branch, MAIL, NAME};
use crate::exit::CliError;
use crate::git::Git;

/// What became of a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Change {
    Created,
    Updated,
    Unchanged,
}

/// Points the branches at their commits, all of them or none.
pub(crate) fn update(git: &Git, branches: &[Branch]) -> Result<Vec<Change>, CliError> {
    if git
        .ask(["show-ref", "--verify", "refs/heads/steps"])
        .is_some()
    {
        return Err(CliError::bad(
            "the branch `steps` is in the way of `steps/chapter1`: rename it with `git branch -m \
             steps my-steps`",
        ));
    }
    let mut changes = Vec::new();
    let mut orders = Vec::new();
    for branch in branches {
        let reference = format!("refs/heads/{}", branch.name);
        let new = branch
            .steps
            .last()
            .map_or(&branch.base, |step| &step.commit);
        let old = git.ask(["rev-parse", "--verify", "--quiet", &reference]);
        changes.push(match old {
            Some(old) if old == *new => Change::Unchanged,
            Some(old) => {
                refuse_a_checked_out(git, &branch.name)?;
                refuse_a_readers_own(git, &branch.name, &old)?;
                orders.push(format!("update {reference} {new} {old}\n"));
                Change::Updated
            }
            None => {
                orders.push(format!("create {reference} {new}\n"));
                Change::Created
            }
        });
    }
    // One transaction: a branch that somebody moves meanwhile stops all.
    git.run(
        ["update-ref", "-m", "cargo workshop steps", "--stdin"],
        &orders.concat(),
    )?;
    Ok(changes)
}

/// The first commit at or below `commit` that is no step: what a branch stands
/// on, also when a step is checked out.
pub(super) fn beneath_steps(git: &Git, commit: &str) -> Result<String, CliError> {
    let mut at = Commit::read(git, commit)?;
    while at.is_step() {
        at = Commit::read(git, &at.parents)?;
    }
    Ok(at.hash)
}

/// A branch is ours if every commit down to its base is a step whose content is
/// that of the base, and the base is on another branch too: then moving it
/// loses nothing. A reader's commit on top, an amended step, or a branch of the
/// same name from elsewhere all fail this.
fn refuse_a_readers_own(git: &Git, branch: &str, tip: &str) -> Result<(), CliError> {
    let base = beneath_steps(git, tip)?;
    let mut at = Commit::read(git, tip)?;
    let mut ours = at.is_step();
    while ours && at.is_step() {
        ours = at.is_regenerable(git, &base);
        at = Commit::read(git, &at.parents)?;
    }
    if ours && is_elsewhere(git, &base) {
        return Ok(());
    }
    Err(CliError::bad(format!(
        "the branch `{branch}` holds commits of yours, so it was left alone: rename it with `git \
         branch -m {branch} my-{}` and run this again",
        branch.replace('/', "-")
    )))
}

/// Whether anything but step branches leads to `base`.
fn is_elsewhere(git: &Git, base: &str) -> bool {
    let heads = git.ask(["for-each-ref", "--contains", base, "--format=%(refname)"]);
    heads
        .unwrap_or_default()
        .lines()
        .any(|name| !name.starts_with("refs/heads/steps/"))
        || git
            .ask(["merge-base", "--is-ancestor", base, "HEAD"])
            .is_some()
}

fn refuse_a_checked_out(git: &Git, branch: &str) -> Result<(), CliError> {
    let trees = git.say(["worktree", "list", "--porcelain"])?;
    let mut folder = "";
    for line in trees.lines() {
        if let Some(path) = line.strip_prefix("worktree ") {
            folder = path;
        } else if line.strip_prefix("branch refs/heads/") == Some(branch) {
            return Err(CliError::bad(format!(
                "the branch `{branch}` is checked out in {folder}: change to another branch there, \
                 such as with `git switch -`, and run this again"
            )));
        }
    }
    Ok(())
}

/// What tells a step from another commit.
struct Commit {
    hash: String,
    parents: String,
    people: [String; 2],
    /// Package, place and variant of the trailer.
    trailer: Option<String>,
}

impl Commit {
    fn read(git: &Git, commit: &str) -> Result<Self, CliError> {
        let format = "--format=%H%n%P%n%an <%ae>%n%cn <%ce>%n%B";
        let text = git.say(["show", "--no-patch", "--no-show-signature", format, commit])?;
        let mut lines = text.lines();
        let mut line = || lines.next().unwrap_or_default().to_owned();
        let (hash, parents, people) = (line(), line(), [line(), line()]);
        Ok(Self {
            hash,
            parents,
            people,
            trailer: lines
                .next_back()
                .and_then(|last| last.strip_prefix(TRAILER))
                .map(str::to_owned),
        })
    }

    fn is_step(&self) -> bool {
        let ours = format!("{NAME} <{MAIL}>");
        let one_parent = !self.parents.is_empty() && !self.parents.contains(' ');
        one_parent && self.trailer.is_some() && self.people.iter().all(|person| *person == ours)
    }

    /// Whether its tree is the base's with a variant in the exercise's place.
    fn is_regenerable(&self, git: &Git, base: &str) -> bool {
        let variant = self
            .trailer
            .as_deref()
            .and_then(|trailer| trailer.rsplit(' ').next())
            .unwrap_or_default();
        let Some(changes) = git.ask([
            "diff-tree",
            "-r",
            "--no-renames",
            "--name-only",
            base,
            &self.hash,
        ]) else {
            return false;
        };
        changes.lines().all(|path| {
            let Some(folder) = path.strip_suffix("/exercise.rs") else {
                return false;
            };
            let here = git.ask(["rev-parse", "--verify", &format!("{}:{path}", self.hash)]);
            let there = git.ask([
                "rev-parse",
                "--verify",
                &format!("{base}:{folder}/{variant}.rs"),
            ]);
            here.is_some() && here == there
        })
    }
}
