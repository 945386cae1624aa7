//! The reference way through the capstone: one change after the other, as `capstone/reference/way/NN-name.patch`.
//!
//! A file is a commit: its message, and then what `git apply` takes.

use std::path::Path;

use course::report::way::Scores;
use terminal::exit::CliError;
use terminal::git::Git;

use super::message::{TRAILER, wrapped};
use super::step::{Branch, Change, StepCommit};

/// Folder of the changes and of their scores.
pub(crate) const FOLDER: &str = "capstone/reference/way";
/// The scores, beside the changes.
const RECORD: &str = "scores.json";
/// The branch's name below `steps/`.
pub(super) const NAME: &str = "capstone";

/// One change.
#[derive(Debug, Clone)]
pub(crate) struct Patch {
    /// The file's, without its ending: `03-index-the-seats`.
    pub(crate) name: String,
    message: String,
    diff: String,
}

/// All changes that are committed at `base`, in their order.
pub(crate) fn read(git: &Git, base: &str) -> Result<Vec<Patch>, CliError> {
    let folder = format!("{FOLDER}/");
    let list = git.say(["ls-tree", "--name-only", base, &folder])?;
    let mut patches = Vec::new();
    for path in list.lines() {
        let Some(file) = path.strip_prefix(&folder) else {
            continue;
        };
        let Some(name) = file.strip_suffix(".patch") else {
            continue;
        };
        let text = git.run(["cat-file", "blob", &format!("{base}:{path}")], "")?;
        let Some(end) = text.find("\ndiff --git ") else {
            return Err(CliError::usage(format!("{path} changes nothing")));
        };
        let (message, diff) = text.split_at(end + 1);
        patches.push(Patch {
            name: name.to_owned(),
            message: message.trim().to_owned(),
            diff: diff.to_owned(),
        });
    }
    Ok(patches)
}

impl Patch {
    fn subject(&self) -> &str {
        self.message.lines().next().unwrap_or_default()
    }

    /// The tree with this change, too. `git` has an index of its own. `None` where it does not apply.
    fn on(&self, git: &Git, tree: &str) -> Result<Option<String>, CliError> {
        git.say(["read-tree", tree])?;
        if git.run(["apply", "--cached", "-"], &self.diff).is_err() {
            return Ok(None);
        }
        Ok(git.ask(["write-tree"]))
    }
}

/// Their trees, one after the other; the first is that of `base`.
pub(crate) fn trees(git: &Git, base: &str, changes: &[Patch]) -> Result<Vec<String>, CliError> {
    let mut trees = vec![git.say(["rev-parse", &format!("{base}^{{tree}}")])?];
    for change in changes {
        let before = &trees[trees.len() - 1];
        let Some(tree) = change.on(git, before)? else {
            let file = format!("{FOLDER}/{}.patch", change.name);
            return Err(CliError::usage(format!(
                "{file} does not apply any more: write it anew"
            )));
        };
        trees.push(tree);
    }
    Ok(trees)
}

/// The branch of the whole way; `None` where none is committed.
pub(super) fn branch(git: &Git, base: &str) -> Result<Option<Branch>, CliError> {
    let changes = read(git, base)?;
    let date = super::date(git, base)?;
    let scores = git.ask(["cat-file", "blob", &format!("{base}:{FOLDER}/{RECORD}")]);
    let scores: Option<Scores> = match scores {
        Some(text) => serde_json::from_str(&text).ok(),
        None => None,
    };
    let mut parent = base.to_owned();
    let mut steps = Vec::new();
    let trees = trees(git, base, &changes)?;
    for ((number, change), tree) in (1..).zip(&changes).zip(&trees[1..]) {
        let mut paragraphs = vec![change.message.clone()];
        if let Some(scores) = &scores
            && let Some(evidence) = scores.evidence(&change.name)
        {
            paragraphs.push(wrapped(&evidence));
        }
        let picture = format!("{FOLDER}/{}.svg", change.name);
        let committed = format!("{base}:{picture}");
        if git.ask(["cat-file", "-e", &committed]).is_some() {
            paragraphs.push(wrapped(&format!("The picture that led here is {picture}.")));
        }
        let place = format!("{number}/{}", changes.len());
        paragraphs.push(format!("{TRAILER}{NAME} {place} {}", change.name));
        let text = paragraphs.join("\n\n") + "\n";
        let commit = super::commit(git, tree, &parent, date + number, &text)?;
        parent.clone_from(&commit);
        steps.push(StepCommit {
            commit,
            name: change.subject().to_owned(),
            variant: change.name.clone(),
        });
    }
    if steps.is_empty() {
        return Ok(None);
    }
    Ok(Some(Branch {
        chapter: None,
        name: format!("steps/{NAME}"),
        base: base.to_owned(),
        steps,
        change: Change::Unchanged,
    }))
}

/// The scores along the way; `None` where there is no file of them.
pub(crate) fn recorded(root: &Path) -> Result<Option<Scores>, CliError> {
    let file = root.join(FOLDER).join(RECORD);
    match std::fs::read(&file) {
        Ok(text) => {
            let scores = serde_json::from_slice(&text);
            Ok(Some(scores.map_err(CliError::because(file.display()))?))
        }
        Err(_) => Ok(None),
    }
}
