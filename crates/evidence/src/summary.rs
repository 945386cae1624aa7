//! The object of `--format json`, and the short table for a terminal.

use serde::Serialize;

use crate::{
    claim::Metric,
    environment::Environment,
    outcome::GeneratorKind,
    record::Record,
    reference::Published,
    verdict::{Analysis, BoundFinding, VerdictKind},
};

/// One chapter's proof for scripts. Keys are stable; new ones may come.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// The chapter's number.
    pub chapter: u32,
    /// What the run shows.
    pub verdict: VerdictKind,
    /// Why, in one sentence.
    pub reason: String,
    /// The prediction.
    pub law: LawSummary,
    /// The count that noise cannot touch.
    pub mechanism: MechanismSummary,
    /// The gain.
    pub effect: EffectSummary,
    /// Who made the load.
    pub generator: GeneratorSummary,
    /// The machine and the tools.
    pub environment: Environment,
    /// How near the solution came to the law's bound.
    pub bound: Option<BoundFinding>,
    /// Figures published elsewhere.
    pub reference: Vec<Published>,
    /// Where the HTML report is, where one was written.
    pub report: Option<String>,
}

/// The law in short.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LawSummary {
    /// Its name.
    pub name: String,
    /// Solution to problem, as it predicts in the effect's setting.
    pub predicted_ratio: f64,
}

/// The mechanism in short.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MechanismSummary {
    /// What was counted.
    pub name: String,
    /// The problem's reading.
    pub problem: Option<f64>,
    /// The solution's reading.
    pub solution: Option<f64>,
}

/// The effect in short.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EffectSummary {
    /// What was compared.
    pub metric: Metric,
    /// Median ratio, larger being better whatever the metric.
    pub ratio: Option<f64>,
    /// Its 95 % interval, low then high.
    pub interval: Option<(f64, f64)>,
    /// How far from 1 the ratio of equal servers wandered: 0.05 is 5 %.
    pub noise_floor: Option<f64>,
}

/// The generator in short.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GeneratorSummary {
    /// Which program.
    pub name: GeneratorKind,
    /// The most that it used of the processor time it was given, over all measured rounds.
    pub cpu_share: Option<f64>,
    /// Simultaneous users in the effect's setting.
    pub users: u32,
}

impl Summary {
    /// The summary of a record; `report` as the reader may open it.
    pub fn new(_record: &Record, _analysis: &Analysis, _report: Option<String>) -> Self {
        todo!("in the next commit")
    }

    /// The short table for people, at most 80 columns wide.
    pub fn table(&self) -> String {
        todo!("in the next commit")
    }
}
