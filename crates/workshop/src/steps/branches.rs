//! Moves the branches that may be moved: a reader's commits stay.

use super::message::TRAILER;
use super::step::{Branch, Change, MAIL, NAME, beneath_steps, chapter_folders, tree};
use super::way;
use terminal::exit::CliError;
use terminal::git::Git;

/// Points the branches at their commits, all of them or none.
pub(super) fn update(git: &Git, branches: &mut [Branch]) -> Result<(), CliError> {
    if git
        .ask(["show-ref", "--verify", "refs/heads/steps"])
        .is_some()
    {
        return Err(CliError::bad(
            "the branch `steps` is in the way of `steps/chapter1`: rename it with `git branch -m \
             steps my-steps`",
        ));
    }
    let mut orders = Vec::new();
    for branch in branches {
        let reference = format!("refs/heads/{}", branch.name);
        let new = match branch.steps.last() {
            Some(step) => &step.commit,
            None => &branch.base,
        };
        let old = git.ask(["rev-parse", "--verify", "--quiet", &reference]);
        branch.change = match old {
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
        };
    }
    // One transaction: if somebody moves a branch during it, no branch changes.
    git.run(
        ["update-ref", "-m", "cargo workshop steps", "--stdin"],
        &orders.concat(),
    )?;
    Ok(())
}

/// A branch is ours if all its commits are steps on a base that something else leads to, too: then
/// moving it loses nothing. A reader's commit on top, an amended step, or a branch of the same
/// name from elsewhere all fail this.
fn refuse_a_readers_own(git: &Git, branch: &str, tip: &str) -> Result<(), CliError> {
    let base = beneath_steps(git, tip)?;
    if are_steps(git, &base, tip)? && is_elsewhere(git, &base) {
        return Ok(());
    }
    Err(CliError::bad(format!(
        "the branch `{branch}` holds commits of yours, so it was left alone: rename it with `git \
         branch -m {branch} my-{}` and run this again",
        branch.replace('/', "-")
    )))
}

/// Returns whether there are commits from `base` to `tip`, all by us, and each with the tree that its
/// trailer says.
fn are_steps(git: &Git, base: &str, tip: &str) -> Result<bool, CliError> {
    let ours = format!("{NAME} <{MAIL}>");
    let folders = chapter_folders(git, base)?;
    let commits = git.say([
        "log",
        "--no-show-signature",
        "--format=%T%x09%an <%ae>%x09%cn <%ce>%x09%(trailers:only,unfold,separator=%x09)",
        &format!("{base}..{tip}"),
    ])?;
    let mut way = Vec::new();
    for commit in commits.lines() {
        let parts: Vec<&str> = commit.split('\t').collect();
        let [found, author, committer, trailer] = parts[..] else {
            return Ok(false);
        };
        // `chapter1 2/3 solution`
        let step = trailer.strip_prefix(TRAILER).unwrap_or_default();
        let number = step.split(' ').next().unwrap_or_default();
        let due = if number == way::NAME {
            if way.is_empty() {
                way = way::trees(git, base, &way::read(git, base)?)?;
            }
            let place = step.split([' ', '/']).nth(1).unwrap_or_default();
            match place.parse::<usize>() {
                Ok(place) => way.get(place).cloned(),
                Err(_) => None,
            }
        } else {
            let within = format!("chapters/{}-", number.trim_start_matches("chapter"));
            let folder = folders.iter().find(|folder| folder.starts_with(&within));
            let (Some(folder), Some((_, variant))) = (folder, step.rsplit_once(' ')) else {
                return Ok(false);
            };
            tree(git, base, folder, variant)?
        };
        if [author, committer] != [&*ours; 2] || due.as_deref() != Some(found) {
            return Ok(false);
        }
    }
    Ok(!commits.is_empty())
}

/// Returns whether anything but step branches leads to `base`.
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
