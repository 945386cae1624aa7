//! The scores so far: `.workshop/capstone/history.json`.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use terminal::exit::CliError;
use terminal::files;

use crate::journeys::Score;
use crate::reading::read_if_there;

/// Characters of the best score's bar.
const WIDTH: u32 = 40;

/// All scores that were kept, the first one first.
#[derive(Debug)]
pub struct History {
    file: PathBuf,
    runs: Vec<Run>,
}

/// One `bench`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Run {
    /// The commit that was there.
    pub commit: String,
    /// `true` if the shop differed from that commit.
    pub is_changed: bool,
    /// `None` where a contract test failed, which is a score of 0.
    pub result: Option<Score>,
}

impl Run {
    fn score(&self) -> f64 {
        self.result.as_ref().map_or(0.0, |score| score.score)
    }

    fn interval(&self) -> Option<[f64; 2]> {
        self.result.as_ref().map(|score| score.interval)
    }
}

impl History {
    /// Reads what was kept; nothing where there is no file.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read or holds something else.
    pub fn read(file: &Path) -> Result<Self, CliError> {
        let text = read_if_there(file).map_err(CliError::because(file.display()))?;
        let runs = match text {
            Some(text) => serde_json::from_str(&text)
                .map_err(CliError::because(format!("{}, remove it", file.display())))?,
            None => Vec::new(),
        };
        Ok(Self {
            file: file.to_owned(),
            runs,
        })
    }

    /// Returns all that was kept.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Keeps one more.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written.
    pub fn add(&mut self, run: Run) -> Result<(), CliError> {
        self.runs.push(run);
        let text = serde_json::to_string_pretty(&self.runs).map_err(CliError::bad)?;
        files::replace(&self.file, text + "\n")
    }

    /// The last score of a shop that kept its contract.
    pub fn last_score(&self) -> Option<&Score> {
        self.runs.iter().rev().find_map(|run| run.result.as_ref())
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.runs.is_empty() {
            return f.write_str(include_str!("no-score.txt"));
        }
        let mut best = f64::MIN_POSITIVE;
        for run in &self.runs {
            best = best.max(run.score());
        }
        for (number, run) in (1..).zip(&self.runs) {
            let changed = if run.is_changed { "+" } else { " " };
            let (commit, score) = (&run.commit, run.score());
            write!(f, "{number:>3}  {commit}{changed} {score:>8.1}")?;
            match run.interval() {
                Some([from, to]) => {
                    let interval = format!("({from:.1} to {to:.1})");
                    writeln!(f, "  {interval:<19}{}", bar(score / best))?;
                }
                None => writeln!(f, "  the contract is broken")?,
            }
        }
        writeln!(f, "\nA + stands for changes that were not committed.")
    }
}

/// One cost of a journey, and what it was at the last score.
#[derive(Debug, Clone, PartialEq)]
pub struct CostChange {
    name: &'static str,
    now: f64,
    before: Option<f64>,
}

impl CostChange {
    /// The costs of a score, beside those of the one before.
    pub fn between(before: Option<&Score>, now: &Score) -> Vec<Self> {
        let mut costs = Vec::new();
        let before = before.map(|score| score.costs.in_words());
        for (at, (name, now)) in now.costs.in_words().into_iter().enumerate() {
            if let Some(now) = now {
                costs.push(Self {
                    name,
                    now,
                    before: before.and_then(|before| before[at].1),
                });
            }
        }
        costs
    }
}

impl fmt::Display for CostChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let now = format!("{:.2} {}", self.now, self.name);
        write!(f, "{now:>22}")?;
        match self.before {
            Some(before) if before > 0.0 => {
                let change = 100.0 * (self.now / before - 1.0);
                write!(f, "  {change:>+6.1} %")
            }
            _ => Ok(()),
        }
    }
}

/// A bar of this share of the best score's.
fn bar(share: f64) -> String {
    let mut bar = String::new();
    for at in 0..WIDTH {
        if f64::from(at) + 0.5 <= share * f64::from(WIDTH) {
            bar.push('#');
        }
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journeys;

    fn score(score: f64, cpu_ms: f64) -> Score {
        Score {
            score,
            interval: [score - 1.0, score + 1.0],
            costs: journeys::Costs {
                cpu_ms: Some(cpu_ms),
                ..journeys::Costs::default()
            },
            ..Score::default()
        }
    }

    #[test]
    fn what_is_added_is_there_when_it_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history.json");
        let mut history = History::read(&file).unwrap();
        assert!(history.to_string().contains("no score yet"));
        for result in [Some(score(10.0, 4.0)), None, Some(score(20.0, 3.0))] {
            let run = Run {
                commit: "abcdef0".to_owned(),
                is_changed: false,
                result,
            };
            history.add(run).unwrap();
        }
        let shown = History::read(&file).unwrap().to_string();
        assert_eq!(shown, history.to_string());
        let lines: Vec<&str> = shown.lines().take(3).collect();
        let bars: Vec<usize> = lines.iter().map(|line| line.matches('#').count()).collect();
        assert_eq!(bars, [20, 0, 40]);
        assert!(lines[1].ends_with("the contract is broken"), "{shown}");
    }

    #[test]
    fn a_score_that_was_kept_before_there_were_costs_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history.json");
        let run = r#"[{"commit":"a","is_changed":false,"result":{"score":7.0,"interval":[6.0,8.0],
            "journeys_per_second":3.0,"late_journeys":0,"broken_journeys":0,"users":2.0,"missed":{},"p99_ms":{},
            "seconds":60.0}}]"#;
        std::fs::write(&file, run).unwrap();
        assert!(History::read(&file).unwrap().to_string().contains("7.0"));
    }

    #[test]
    fn a_cost_is_beside_the_one_before() {
        let costs = CostChange::between(Some(&score(1.0, 4.0)), &score(1.0, 3.0));
        assert_eq!(costs.len(), 1);
        assert_eq!(costs[0].to_string(), "           3.00 CPU ms   -25.0 %");
        let costs = CostChange::between(None, &score(1.0, 3.0));
        assert_eq!(costs[0].to_string(), "           3.00 CPU ms");
    }
}
