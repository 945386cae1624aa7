//! The object of `prove --format json`, and the short table for a terminal.

mod terminal;

use crate::analysis::verdict::{Analysis, VerdictKind};
use crate::measurement::{
    record::{Purpose, Record},
    reference::Published,
};
use children::environment::Environment;
use engine::outcome::GeneratorKind;
use serde::Serialize;

use crate::report::{
    claims::ClaimSummary,
    rows::{Row, rows},
};

/// One chapter's proof for scripts. Keys are stable; new ones may come.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// The chapter's number.
    pub chapter: u32,
    /// Its title.
    pub title: String,
    /// The variant that was compared with the problem.
    pub variant: String,
    /// Verdict on the claims.
    pub verdict: VerdictKind,
    /// Reason for the verdict, in one sentence.
    pub reason: String,
    /// Time that the proof took after compiling, in seconds.
    pub seconds: f64,
    /// Every claim with its figures.
    pub claims: Vec<ClaimSummary>,
    /// Prediction of the law, in a sentence.
    pub prediction: Option<String>,
    /// Program that made the load.
    pub generator: GeneratorSummary,
    /// The machine and the tools.
    pub environment: Environment,
    /// Figures published elsewhere.
    pub reference: Vec<Published>,
    /// Path or address of the HTML report, if one was written.
    pub report: Option<String>,
    /// Rows that the terminal prints.
    #[serde(skip)]
    rows: Vec<Row>,
}

/// The generator in short.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GeneratorSummary {
    /// Its program.
    pub name: GeneratorKind,
    /// Largest share of its CPU time that it used in a judged round, rounds for a root cause excepted.
    pub cpu_share: Option<f64>,
    /// Simultaneous users in the effect's scenario.
    pub users: u32,
}

impl Summary {
    /// Makes the summary of a record whose proof took `seconds`. `report` names the HTML report so that the
    /// reader can open it.
    pub fn new(record: &Record, analysis: &Analysis, seconds: f64, report: Option<String>) -> Self {
        Self {
            chapter: record.chapter.chapter,
            title: record.chapter.title.clone(),
            variant: record.variant.clone(),
            verdict: analysis.verdict.kind,
            reason: analysis.verdict.reason.clone(),
            seconds,
            claims: analysis.findings.iter().map(ClaimSummary::from).collect(),
            prediction: analysis.prediction.as_ref().map(|law| law.sentence.clone()),
            generator: GeneratorSummary::of(record),
            environment: record.environment.clone(),
            reference: record.references.clone(),
            report,
            rows: rows(record, analysis),
        }
    }
}

impl GeneratorSummary {
    fn of(record: &Record) -> Self {
        let (mut name, mut cpu_share) = (None, None::<f64>);
        for round in &record.rounds {
            // Rounds for a root cause alone may have few users.
            if !round.is_judged() || round.purpose == Purpose::RootCause {
                continue;
            }
            let generator = &round.outcome.generator;
            name.get_or_insert(generator.name);
            if let Some(share) = generator.cpu_share {
                cpu_share = Some(cpu_share.unwrap_or(share).max(share));
            }
        }
        Self {
            name: name.unwrap_or(GeneratorKind::Embedded),
            cpu_share,
            users: record.chapter.effect_scenario().users,
        }
    }
}
