//! The object of `--format json`, and the short table for a terminal.

mod terminal;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::table::beside_text;
use analysis::{
    price::PriceFinding,
    utilisation::UtilisedFinding,
    verdict::{Analysis, BoundFinding, PointFinding, VerdictKind},
};
use measurement::{
    chapter_file::Setting,
    claim::{Metric, PROBLEM, SOLUTION},
    environment::Environment,
    outcome::GeneratorKind,
    record::{Purpose, Record},
    reference::Published,
};

/// One chapter's proof for scripts. Keys are stable; new ones may come.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// The chapter's number.
    pub chapter: u32,
    /// Its title.
    pub title: String,
    /// What the run shows.
    pub verdict: VerdictKind,
    /// Why, in one sentence.
    pub reason: String,
    /// The prediction.
    pub law: LawSummary,
    /// The count that noise cannot touch.
    pub mechanism: MechanismSummary,
    /// What stands beside it.
    pub beside: Vec<BesideSummary>,
    /// The gain.
    pub effect: EffectSummary,
    /// Who made the load.
    pub generator: GeneratorSummary,
    /// The machine and the tools.
    pub environment: Environment,
    /// How near the solution came to the law's bound.
    pub bound: Option<BoundFinding>,
    /// How near it came to the utilisation law's, for the processor time that the server was given.
    pub utilised: Option<UtilisedFinding>,
    /// What the solution cost, where the chapter claims that.
    pub price: Option<PriceFinding>,
    /// Other settings of the law.
    pub points: Vec<PointFinding>,
    /// The loads, by name.
    pub settings: BTreeMap<String, Setting>,
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
    /// Solution to problem, as it predicts in the effect's setting; `None` without the profile that
    /// it needs.
    pub predicted_ratio: Option<f64>,
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

/// A figure beside the mechanism, as text with its unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BesideSummary {
    /// What was counted.
    pub name: String,
    /// The problem's reading.
    pub problem: Option<String>,
    /// The solution's reading.
    pub solution: Option<String>,
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
    /// The claimed ratio.
    pub claimed: f64,
    /// What the problem gave: the median of its rounds, in the metric's unit.
    pub problem: Option<f64>,
    /// What the solution gave: the median of its rounds, in the metric's unit.
    pub solution: Option<f64>,
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
    pub fn new(record: &Record, analysis: &Analysis, report: Option<String>) -> Self {
        let chapter = &record.chapter;
        let effect = &analysis.effect;
        let mechanism = &analysis.mechanism;
        Self {
            chapter: chapter.chapter,
            title: chapter.title.clone(),
            verdict: analysis.verdict.kind,
            reason: analysis.verdict.reason.clone(),
            law: LawSummary {
                name: chapter.law.name().to_owned(),
                predicted_ratio: analysis
                    .prediction
                    .as_ref()
                    .map(|prediction| prediction.ratio),
            },
            mechanism: MechanismSummary {
                name: mechanism.name.clone(),
                problem: mechanism.problem,
                solution: mechanism.solution,
            },
            beside: chapter
                .beside
                .iter()
                .map(|beside| BesideSummary {
                    name: beside.name.clone(),
                    problem: beside_text(record, beside, PROBLEM),
                    solution: beside_text(record, beside, SOLUTION),
                })
                .collect(),
            effect: EffectSummary {
                metric: effect.metric,
                ratio: effect.ratio,
                interval: effect.interval,
                noise_floor: effect.noise_floor,
                claimed: effect.claimed,
                problem: effect.problem,
                solution: effect.solution,
            },
            generator: GeneratorSummary::of(record),
            environment: record.environment.clone(),
            bound: analysis.bound.clone(),
            utilised: analysis.utilised.clone(),
            price: analysis.price.clone(),
            points: analysis.points.clone(),
            settings: chapter.settings.clone(),
            reference: record.references.clone(),
            report,
        }
    }
}

impl GeneratorSummary {
    fn of(record: &Record) -> Self {
        let judged = || {
            // Where the mechanism is counted in rounds of its own, few users may be enough.
            record
                .rounds
                .iter()
                .filter(|round| round.is_judged() && round.purpose != Purpose::Mechanism)
        };
        let shares = judged().filter_map(|round| round.outcome.generator.cpu_share);
        Self {
            name: judged()
                .map(|round| round.outcome.generator.name)
                .next()
                .unwrap_or(GeneratorKind::Embedded),
            cpu_share: shares.reduce(f64::max),
            users: record.chapter.effect_setting().users,
        }
    }
}
