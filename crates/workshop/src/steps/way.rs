//! The reference way through the capstone: twelve commits in one mailbox, as `git format-patch` writes it.

use std::fs;

use terminal::exit::CliError;
use terminal::files;
use terminal::git::Git;

use super::message::TRAILER;
use super::step::{Branch, Change, StepCommit};

/// The commits. `shop-bench/tests/reference/way.rs` writes them anew when the shop changes.
const MAILBOX: &str = "capstone/reference/way/commits.mbox";
/// The branch's name below `steps/`.
pub(super) const NAME: &str = "capstone";

/// One commit of the mailbox.
#[derive(Debug)]
pub(crate) struct Patch {
    /// Its number and subject: `03-index-the-seats`.
    name: String,
    subject: String,
    body: String,
    diff: String,
}

/// Reads the way that is committed at `base`; it is empty where none is.
pub(crate) fn read(git: &Git, base: &str) -> Result<Vec<Patch>, CliError> {
    let blob = format!("{base}:{MAILBOX}");
    if git.ask(["cat-file", "-e", &blob]).is_none() {
        return Ok(Vec::new());
    }
    let mailbox = git.run(["cat-file", "blob", &blob], "")?;
    let folder = files::temporary()?;
    let at = |name: &str| folder.path().join(name).display().to_string();
    let mails: usize = git
        .run(["mailsplit", &format!("-o{}", at(""))], &mailbox)?
        .trim()
        .parse()
        .map_err(CliError::because(MAILBOX))?;
    let mut patches = Vec::new();
    for number in 1..=mails {
        // git numbers the files so.
        let mail =
            fs::read_to_string(at(&format!("{number:04}"))).map_err(CliError::because(MAILBOX))?;
        let about = git.run(["mailinfo", "-k", &at("body"), &at("diff")], &mail)?;
        let subject = about
            .lines()
            .find_map(|line| line.strip_prefix("Subject: "))
            .unwrap_or_default();
        patches.push(Patch {
            name: named(number, subject),
            subject: subject.to_owned(),
            body: fs::read_to_string(at("body")).map_err(CliError::because(MAILBOX))?,
            diff: fs::read_to_string(at("diff")).map_err(CliError::because(MAILBOX))?,
        });
    }
    Ok(patches)
}

/// Names a commit: `03-index-the-seats` for the third, `Index the seats`.
fn named(number: usize, subject: &str) -> String {
    let mut name = format!("{number:02}");
    for word in subject.split(|letter: char| !letter.is_alphanumeric()) {
        if !word.is_empty() {
            name.push('-');
            name.push_str(&word.to_lowercase());
        }
    }
    name
}

/// Returns the trees, one after the other; the first is that of `base`. `git` has an index of its own.
pub(crate) fn trees(git: &Git, base: &str, changes: &[Patch]) -> Result<Vec<String>, CliError> {
    git.say(["read-tree", base])?;
    let mut trees = vec![git.say(["write-tree"])?];
    for change in changes {
        if git.run(["apply", "--cached", "-"], &change.diff).is_err() {
            return Err(CliError::usage(format!(
                "`{}` of {MAILBOX} does not apply any more: write the mailbox anew with UPDATE_EXPECT=1 cargo test -p \
                 shop-bench --test reference way",
                change.subject
            )));
        }
        trees.push(git.say(["write-tree"])?);
    }
    Ok(trees)
}

/// The branch of the whole way; `None` where none is committed.
pub(super) fn branch(git: &Git, base: &str) -> Result<Option<Branch>, CliError> {
    let changes = read(git, base)?;
    if changes.is_empty() {
        return Ok(None);
    }
    let date = super::date(git, base)?;
    let mut parent = base.to_owned();
    let mut steps = Vec::new();
    let trees = trees(git, base, &changes)?;
    for ((number, change), tree) in (1..).zip(&changes).zip(&trees[1..]) {
        let place = format!("{number}/{}", changes.len());
        let text = format!(
            "{}\n\n{}\n\n{TRAILER}{NAME} {place} {}\n",
            change.subject,
            change.body.trim(),
            change.name
        );
        let commit = super::commit(git, tree, &parent, date + number, &text)?;
        parent.clone_from(&commit);
        steps.push(StepCommit {
            commit,
            name: change.subject.clone(),
            variant: change.name.clone(),
        });
    }
    Ok(Some(Branch {
        chapter: None,
        name: format!("steps/{NAME}"),
        base: base.to_owned(),
        steps,
        change: Change::Unchanged,
    }))
}
