//! The reference way through the capstone: one change after the other, as `capstone/reference/way/NN-name.patch`.
//!
//! A file is a commit: its message, and then what `git apply` takes.

use serde::{Deserialize, Serialize};

use engine::figures;
use engine::statistics::{Gains, Looks};
use terminal::exit::CliError;
use terminal::git::Git;

use super::message::{TRAILER, wrapped};
use super::step::{Branch, Change, StepCommit};

/// Where the changes are, and what was measured of them.
pub(crate) const FOLDER: &str = "capstone/reference/way";
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
    let names = list.lines().filter_map(|path| {
        let name = path.strip_prefix(&folder)?.strip_suffix(".patch")?;
        Some(name.to_owned())
    });
    names
        .map(|name| {
            let blob = format!("{base}:{folder}{name}.patch");
            let text = git.run(["cat-file", "blob", &blob], "")?;
            let (message, _) = text
                .split_once("\ndiff --git ")
                .ok_or_else(|| CliError::usage(format!("{folder}{name}.patch changes nothing")))?;
            let (message, diff) = text.split_at(message.len() + 1);
            Ok(Patch {
                name,
                message: message.trim().to_owned(),
                diff: diff.to_owned(),
            })
        })
        .collect()
}

impl Patch {
    /// Whether its message has this text, wherever lines end.
    pub(crate) fn speaks_of(&self, text: &str) -> bool {
        self.message.replace('\n', " ").contains(text)
    }

    fn subject(&self) -> &str {
        self.message.lines().next().unwrap_or_default()
    }

    /// The tree with this change, too. `git` has an index of its own. `None` where it does not apply.
    fn on(&self, git: &Git, tree: &str) -> Result<Option<String>, CliError> {
        self.applied(git, tree, &["apply", "--cached", "-"])
    }

    /// As [`Patch::on`], on a tree in which some of the changes before it may be missing.
    pub(crate) fn merged(&self, git: &Git, tree: &str) -> Result<Option<String>, CliError> {
        self.applied(git, tree, &["apply", "--cached", "--3way", "-"])
    }

    fn applied(&self, git: &Git, tree: &str, how: &[&str]) -> Result<Option<String>, CliError> {
        git.say(["read-tree", tree])?;
        if git.run(how, &self.diff).is_err() {
            return Ok(None);
        }
        // With conflicts there is no tree.
        Ok(git.ask(["write-tree"]))
    }
}

/// Their trees, one after the other; the first is that of `base`.
pub(crate) fn trees(git: &Git, base: &str, changes: &[Patch]) -> Result<Vec<String>, CliError> {
    let mut trees = vec![git.say(["rev-parse", &format!("{base}^{{tree}}")])?];
    for change in changes {
        let before = &trees[trees.len() - 1];
        let tree = change.on(git, before)?.ok_or_else(|| {
            let file = format!("{FOLDER}/{}.patch", change.name);
            CliError::usage(format!("{file} does not apply any more: write it anew"))
        })?;
        trees.push(tree);
    }
    Ok(trees)
}

/// The branch of the whole way; `None` where none is committed.
pub(super) fn branch(git: &Git, base: &str) -> Result<Option<Branch>, CliError> {
    let changes = read(git, base)?;
    let date = super::date(git, base)?;
    let measured = git
        .ask(["cat-file", "blob", &format!("{base}:{FOLDER}/scores.json")])
        .and_then(|text| serde_json::from_str::<Scores>(&text).ok());
    let mut parent = base.to_owned();
    let mut steps = Vec::new();
    let trees = trees(git, base, &changes)?;
    for ((number, change), tree) in (1..).zip(&changes).zip(&trees[1..]) {
        let mut paragraphs = vec![change.message.clone()];
        let evidence = measured
            .as_ref()
            .and_then(|scores| scores.evidence(&change.name));
        paragraphs.extend(evidence.map(|text| wrapped(&text)));
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
    Ok((!steps.is_empty()).then(|| Branch {
        chapter: None,
        name: format!("steps/{NAME}"),
        base: base.to_owned(),
        steps,
        change: Change::Unchanged,
    }))
}

/// What was measured of the way: `capstone/reference/way/scores.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Scores {
    /// The day.
    pub(crate) day: String,
    /// What ran it.
    pub(crate) machine: String,
    /// Seconds that each score counts.
    pub(crate) seconds: u64,
    /// The changes' names.
    pub(crate) changes: Vec<String>,
    /// In each round the score of the beginning, and after each change; `None` of what it left out.
    pub(crate) rounds: Vec<Vec<Option<f64>>>,
    /// The same changes in other orders, each once.
    #[serde(default)]
    pub(crate) orders: Vec<Order>,
}

/// The same changes in another order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Order {
    /// What it was drawn with.
    pub(crate) seed: u64,
    /// The first changes' names.
    pub(crate) changes: Vec<String>,
    /// The score of the beginning, and after each change.
    pub(crate) scores: Vec<f64>,
}

impl Scores {
    /// How many rounds have a score after so many changes.
    pub(crate) fn rounds_of(&self, after: usize) -> usize {
        self.both(after, after).count()
    }

    /// The mean score after so many changes.
    pub(crate) fn mean(&self, after: usize) -> Option<f64> {
        Some(self.means(after, after)?.1)
    }

    /// The mean scores after `before` changes and after `after`, of the rounds that have both.
    fn means(&self, before: usize, after: usize) -> Option<(f64, f64)> {
        let (mut base, mut change) = (Gains::default(), Gains::default());
        for (earlier, later) in self.both(before, after) {
            base.add(&[1.0], &[earlier], true)?;
            change.add(&[1.0], &[later], true)?;
        }
        Some((base.ratio()?, change.ratio()?))
    }

    /// How many times as good the shop was after so many changes as after `before`, by the rounds.
    pub(crate) fn gains(&self, before: usize, after: usize) -> Option<(f64, Option<(f64, f64)>)> {
        let mut gains = Gains::default();
        for (base, change) in self.both(before, after) {
            gains.add(&[base], &[change], true)?;
        }
        Some((gains.ratio()?, gains.interval(Looks::ONCE)))
    }

    /// The scores of each round that has both.
    fn both(&self, before: usize, after: usize) -> impl Iterator<Item = (f64, f64)> {
        let score = |round: &Vec<Option<f64>>, place: usize| *round.get(place)?;
        let rounds = self.rounds.iter();
        rounds.filter_map(move |round| score(round, before).zip(score(round, after)))
    }

    /// A sentence for the commit of a change.
    fn evidence(&self, change: &str) -> Option<String> {
        let before = self.changes.iter().position(|name| name == change)?;
        let (ratio, interval) = self.gains(before, before + 1)?;
        let (earlier, later) = self.means(before, before + 1)?;
        let interval = interval.map_or_else(String::new, |(low, high)| {
            let (low, high) = (figures::ratio(low), figures::ratio(high));
            format!(" (95 % interval {low} to {high})")
        });
        Some(format!(
            "Measured on {}, {} rounds: a score of {} before and {} after, {} times{interval}. Repeat it with `cargo \
             workshop capstone bench --against HEAD~1`.",
            self.day,
            self.both(before, before + 1).count(),
            figures::ratio(earlier),
            figures::ratio(later),
            figures::ratio(ratio),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gain_is_of_the_rounds_in_which_both_were_measured() {
        let scores = Scores {
            changes: vec!["01-index".to_owned()],
            rounds: [[8.0, 16.0], [9.0, 18.0], [7.0, 14.0]]
                .map(|round| round.map(Some).to_vec())
                .to_vec(),
            ..Scores::default()
        };
        let (ratio, interval) = scores.gains(0, 1).unwrap();
        assert!((ratio - 2.0).abs() < 1e-9);
        assert!(interval.is_some_and(|(low, high)| high - low < 1e-9));
        let text = scores.evidence("01-index").unwrap();
        assert!(
            text.contains("2.00 times (95 % interval 2.00 to 2.00)"),
            "{text}"
        );
        assert_eq!(scores.evidence("02-unknown"), None);
    }
}
