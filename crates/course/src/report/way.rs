//! Scores of the ticket shop along the reference way: a table, and a curve.

use std::fmt::Write as _;

use drawing::table::{Column, Table};
use serde::{Deserialize, Serialize};
use statistics::figures;
use statistics::{Gains, Looks};

use super::plots::{self, Direction, Marks, Point};

/// Scores of the way: `capstone/reference/way/scores.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    /// The day.
    pub day: String,
    /// The machine's CPU.
    pub machine: String,
    /// Seconds that each score counts.
    pub seconds: u64,
    /// The changes' names.
    pub changes: Vec<String>,
    /// Commits that join several changes; if it is empty, each change is a commit.
    #[serde(default)]
    pub commits: Vec<Joined>,
    /// Scores of each round: at the beginning, and after each change. `None` for a change that the round left
    /// out.
    pub rounds: Vec<Vec<Option<f64>>>,
    /// Runs of the same changes in other orders, each once.
    #[serde(default)]
    pub orders: Vec<Order>,
}

/// A commit of the way that joins changes which were measured one by one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joined {
    /// Name of the commit: `03-let-readers-go-on`.
    pub name: String,
    /// Number of its last change.
    pub until: usize,
}

/// A run of the same changes in another order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// Seed that drew the order.
    pub seed: u64,
    /// Names of the order's first changes.
    pub changes: Vec<String>,
    /// Scores at the beginning, and after each change.
    pub scores: Vec<f64>,
}

impl Scores {
    /// Counts the rounds that have a score after `after` changes.
    pub fn rounds_of(&self, after: usize) -> usize {
        self.both(after, after).len()
    }

    /// Returns the mean score after `after` changes.
    pub fn mean(&self, after: usize) -> Option<f64> {
        Some(self.means(after, after)?.1)
    }

    /// Returns the mean scores after `before` and after `after` changes, over the rounds that have both.
    pub fn means(&self, before: usize, after: usize) -> Option<(f64, f64)> {
        let (mut base, mut change) = (Gains::default(), Gains::default());
        for (earlier, later) in self.both(before, after) {
            base.add(&[1.0], &[earlier], true)?;
            change.add(&[1.0], &[later], true)?;
        }
        Some((base.ratio()?, change.ratio()?))
    }

    /// Returns how many times as good the shop was after `after` changes as after `before`, with the
    /// interval.
    pub fn gains(&self, before: usize, after: usize) -> Option<(f64, Option<(f64, f64)>)> {
        let mut gains = Gains::default();
        for (base, change) in self.both(before, after) {
            gains.add(&[base], &[change], true)?;
        }
        Some((gains.ratio()?, gains.interval(Looks::ONCE)))
    }

    /// Collects the two scores of each round that has both.
    fn both(&self, before: usize, after: usize) -> Vec<(f64, f64)> {
        let mut both = Vec::new();
        for round in &self.rounds {
            if let Some(Some(earlier)) = round.get(before)
                && let Some(Some(later)) = round.get(after)
            {
                both.push((*earlier, *later));
            }
        }
        both
    }

    /// Returns how many changes were made before a commit, and how many after it.
    fn changes_of(&self, commit: &str) -> Option<(usize, usize)> {
        if self.commits.is_empty() {
            let before = self.changes.iter().position(|name| name == commit)?;
            return Some((before, before + 1));
        }
        let mut before = 0;
        for joined in &self.commits {
            if joined.name == commit {
                return Some((before, joined.until));
            }
            before = joined.until;
        }
        None
    }

    /// Formats a sentence for a commit of the way.
    pub fn evidence(&self, commit: &str) -> Option<String> {
        let (before, after) = self.changes_of(commit)?;
        let (ratio, interval) = self.gains(before, after)?;
        let (earlier, later) = self.means(before, after)?;
        let interval = match interval {
            Some((low, high)) => format!(
                " (95 % interval {} to {})",
                figures::ratio(low),
                figures::ratio(high)
            ),
            None => String::new(),
        };
        Some(format!(
            "Measured on {}, {} rounds: a score of {} before and {} after, {} times{interval}. Repeat it with `cargo \
             workshop capstone bench --against HEAD~1`.",
            self.day,
            self.both(before, after).len(),
            figures::ratio(earlier),
            figures::ratio(later),
            figures::ratio(ratio),
        ))
    }

    /// Formats a table with a row for the beginning and for each change.
    pub fn table(&self) -> String {
        let columns = [
            Column::figures(""),
            Column::text("change"),
            Column::figures("score"),
            Column::figures("times as good as before"),
            Column::figures("commit"),
        ];
        let mut rows = Vec::new();
        for after in 0..=self.changes.len() {
            let Some(score) = self.mean(after) else {
                break;
            };
            let (change, gain) = match after {
                0 => ("the shop as it was".to_owned(), String::new()),
                _ => (
                    in_words(&self.changes[after - 1]),
                    self.gain_in_words(after - 1, after),
                ),
            };
            let commit = match self.commits.iter().position(|joined| after <= joined.until) {
                _ if after == 0 => String::new(),
                Some(place) => (place + 1).to_string(),
                None => after.to_string(),
            };
            rows.push(vec![
                after.to_string(),
                change,
                figures::ratio(score),
                gain,
                commit,
            ]);
        }
        let mut text = Table::new(columns, rows).markdown();
        // Writing to a String cannot fail.
        _ = writeln!(
            text,
            "\n*Mean scores of rounds of {} s. A gain is of the rounds that have both shops, and rows differ in their rounds: \
             compare by the gain. `steps/capstone` joins the changes into the commits of the last column. Measured by `cargo run -p studies --bin shop_way` until {} (UTC): {}.*",
            self.seconds, self.day, self.machine,
        );
        text
    }

    fn gain_in_words(&self, before: usize, after: usize) -> String {
        let Some((ratio, interval)) = self.gains(before, after) else {
            return String::new();
        };
        let ratio = figures::ratio(ratio);
        match interval {
            Some((low, high)) => {
                let (low, high) = (figures::ratio(low), figures::ratio(high));
                format!("{ratio} ({low} to {high})")
            }
            None => ratio,
        }
    }

    /// Draws the score after each change, for the other orders as well.
    pub fn curve(&self) -> Option<String> {
        let mut points = Vec::new();
        for after in 0..=self.changes.len() {
            let Some(score) = self.mean(after) else {
                break;
            };
            points.push(Point::at(after as f64, score));
        }
        let mut series = vec![Marks {
            name: "the way".to_owned(),
            points,
        }];
        for order in &self.orders {
            let mut points = Vec::new();
            for (after, score) in order.scores.iter().enumerate() {
                points.push(Point::at(after as f64, *score));
            }
            series.push(Marks {
                name: format!("order {}", order.seed),
                points,
            });
        }
        let across = Direction::new("changes", &figures::count);
        let up = Direction::new("score", &figures::ratio);
        let title = "The ticket shop's score, change after change";
        plots::xy(title, &across, &up, &series, true)
    }
}

/// Shortens `03-index-the-seats` to `index the seats`.
fn in_words(change: &str) -> String {
    let (_, words) = change.split_once('-').unwrap_or_default();
    words.replace('-', " ")
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
        assert!(scores.table().contains("| 1 | index | "));
    }

    #[test]
    fn a_commit_that_joins_changes_has_the_gain_of_all_of_them() {
        let joined = |name: &str, until| Joined {
            name: name.to_owned(),
            until,
        };
        let scores = Scores {
            changes: ["01-a", "02-b", "03-c"].map(str::to_owned).to_vec(),
            commits: vec![joined("01-both", 2), joined("02-last", 3)],
            rounds: vec![[1.0, 2.0, 3.0, 12.0].map(Some).to_vec(); 2],
            ..Scores::default()
        };
        let of = |commit| scores.evidence(commit).unwrap_or_default();
        assert!(of("01-both").contains("1.00 before and 3.00 after"));
        assert!(of("02-last").contains("3.00 before and 12.0 after"));
        assert_eq!(of("03-c"), "");
        let table = scores.table();
        assert!(
            table.contains("| 2 | b | 3.00 |") && table.contains("| 1 |\n| 3 |"),
            "{table}"
        );
    }
}
