//! The scores so far: `.workshop/capstone/history.json`.

use std::fmt;
use std::path::{Path, PathBuf};

use journeys::Score;
use serde::{Deserialize, Serialize};
use terminal::exit::CliError;
use terminal::files;

/// Characters of the best score's bar.
const WIDTH: u32 = 40;

/// All that were kept, the first one first.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(super) struct History {
    #[serde(skip)]
    file: PathBuf,
    runs: Vec<Run>,
}

/// One `bench`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Run {
    /// The commit that was there.
    pub(super) commit: String,
    /// Whether the shop differed from it.
    pub(super) is_changed: bool,
    /// `None` where a contract test failed, which is a score of 0.
    pub(super) result: Option<Score>,
}

impl History {
    pub(super) fn read(file: &Path) -> Result<Self, CliError> {
        let runs = match std::fs::read(file) {
            Ok(text) => serde_json::from_slice(&text)
                .map_err(CliError::because(format!("{}, remove it", file.display())))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(CliError::because(file.display())(error)),
        };
        Ok(Self {
            file: file.to_owned(),
            runs,
        })
    }

    /// Keeps one more.
    pub(super) fn add(&mut self, run: Run) -> Result<(), CliError> {
        self.runs.push(run);
        let text = serde_json::to_string_pretty(&self.runs).map_err(CliError::bad)?;
        files::replace(&self.file, text + "\n")
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.runs.is_empty() {
            return writeln!(
                f,
                "The ticket shop in capstone/ has no score yet. Read its README.md, then\n  \
                 cargo workshop capstone bench"
            );
        }
        let score = |run: &Run| run.result.as_ref().map_or(0.0, |score| score.score);
        let best = self
            .runs
            .iter()
            .map(score)
            .fold(f64::MIN_POSITIVE, f64::max);
        for (number, run) in (1..).zip(&self.runs) {
            let changed = if run.is_changed { "+" } else { " " };
            let bar = bar(score(run) / best);
            write!(
                f,
                "{number:>3}  {}{changed} {:>8.1}",
                run.commit,
                score(run)
            )?;
            match &run.result {
                Some(Score { interval, .. }) => {
                    let [from, to] = interval;
                    writeln!(f, "  {:<19}{bar}", format!("({from:.1} to {to:.1})"))?;
                }
                None => writeln!(f, "  the contract is broken")?,
            }
        }
        writeln!(f, "\nA + stands for changes that were not committed.")
    }
}

/// Of the best score's bar so much.
fn bar(share: f64) -> String {
    let length = share * f64::from(WIDTH);
    let is_within = |at: &u32| f64::from(*at) + 0.5 <= length;
    (0..WIDTH).filter(is_within).map(|_| '#').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_is_there_when_it_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history.json");
        let mut history = History::read(&file).unwrap();
        assert!(history.to_string().contains("no score yet"));
        let score = |score| Score {
            score,
            interval: [score - 1.0, score + 1.0],
            journeys_per_second: score,
            late_journeys: 0,
            broken_journeys: 0,
            users: 2.0,
            missed: [].into(),
            p99_ms: [].into(),
            seconds: 60.0,
        };
        for result in [Some(score(10.0)), None, Some(score(20.0))] {
            let run = Run {
                commit: "abcdef0".to_owned(),
                is_changed: false,
                result,
            };
            history.add(run).unwrap();
        }
        let shown = History::read(&file).unwrap().to_string();
        assert_eq!(shown, history.to_string());
        let bars: Vec<_> = shown
            .lines()
            .take(3)
            .map(|line| line.matches('#').count())
            .collect();
        assert_eq!(bars, [20, 0, 40]);
        assert!(shown.contains("the contract is broken"), "{shown}");
    }
}
