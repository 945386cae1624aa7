//! Proofs of the same claims at different times. The interval of one proof shows how far its rounds differ;
//! only another proof shows how far two days differ.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::analysis::verdict::{Analysis, VerdictKind};
use crate::measurement::record::Record;
use drawing::table::{Column, Table};
use engine::figures::{self, ratio};
use serde::{Deserialize, Serialize};

/// Number of a chapter's latest proofs that the table shows.
const SHOWN: usize = 6;

/// Results of one proof that are kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    /// The chapter's number.
    pub chapter: u32,
    /// Moment at which it began, as RFC 3339 in UTC.
    pub started: String,
    /// The code that was measured.
    pub commit: String,
    /// CPU model of the machine; empty for early proofs, which did not keep it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine: String,
    /// Its verdict.
    pub verdict: VerdictKind,
    /// Seconds until the verdict, after compiling and without profiles.
    pub seconds: f64,
    /// The effect, larger being better.
    pub effect: Option<f64>,
    /// Its 95 % interval.
    pub interval: Option<(f64, f64)>,
    /// The predicted effect.
    pub predicted: Option<f64>,
}

impl Proof {
    /// Takes the results from a record; `seconds` is the time until the verdict, without compiling and
    /// profiles.
    pub fn of(record: &Record, analysis: &Analysis, seconds: f64) -> Self {
        let effect = analysis.effect();
        Self {
            chapter: record.chapter.chapter,
            started: record.started.clone(),
            commit: record.commit.in_short(),
            machine: record.environment.cpu_model.clone(),
            verdict: analysis.verdict.kind,
            seconds,
            effect: effect.and_then(|effect| effect.ratio),
            interval: effect.and_then(|effect| effect.interval),
            predicted: analysis.prediction.as_ref().map(|said| said.ratio),
        }
    }
}

/// Formats the latest proofs of each chapter beside each other, and how far they lie apart.
pub fn table(proofs: &[Proof]) -> String {
    let columns = [
        Column::figures("chapter"),
        Column::text("proofs, with the effect, its 95 % interval and the seconds to the verdict"),
        Column::figures("apart"),
        Column::figures("one interval is as wide as"),
    ];
    let mut rows = Vec::new();
    let chapters: BTreeSet<u32> = proofs.iter().map(|proof| proof.chapter).collect();
    for chapter in chapters {
        let mut latest: Vec<_> = proofs.iter().filter(|p| p.chapter == chapter).collect();
        latest.drain(..latest.len().saturating_sub(SHOWN));
        let machines: BTreeSet<_> = latest.iter().map(|proof| &proof.machine).collect();
        // Early proofs do not name their machine.
        let several = machines.iter().filter(|name| !name.is_empty()).count() > 1;
        let lines: Vec<String> = latest.iter().map(|proof| line(proof, several)).collect();
        let effects: Vec<f64> = latest.iter().filter_map(|proof| proof.effect).collect();
        let most = effects.iter().copied().fold(f64::NAN, f64::max);
        let least = effects.iter().copied().fold(f64::NAN, f64::min);
        let apart = (effects.len() > 1).then_some(most / least - 1.0);
        let intervals = latest.iter().filter_map(|proof| proof.interval);
        let widest = intervals
            .map(|(low, high)| high / low - 1.0)
            .max_by(f64::total_cmp);
        rows.push(vec![
            chapter.to_string(),
            lines.join("<br>"),
            percent(apart),
            percent(widest),
        ]);
    }
    let mut text = Table::new(columns, rows).markdown();
    let started = || proofs.iter().map(|proof| &proof.started);
    if let (Some(first), Some(last)) = (started().min(), started().max()) {
        // Shortens `2026-01-31T12:59:59Z` to `2026-01-31 12:59`.
        let minute = |time: &str| time.get(..16).unwrap_or(time).replace('T', " ");
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "\n*Measured by `cargo workshop capture --series`, the first on {} and the last on {} \
             (UTC).*",
            minute(first),
            minute(last)
        );
    }
    text
}

/// Formats one proof. `with_machine` adds the machine, for chapters measured on several.
fn line(proof: &Proof, with_machine: bool) -> String {
    let mut text = format!("{}: ", proof.verdict);
    text += &match proof.effect {
        Some(effect) => format!("{} times", ratio(effect)),
        None => "no effect".to_owned(),
    };
    if let Some((low, high)) = proof.interval {
        let _ = write!(text, " ({} to {})", ratio(low), ratio(high));
    }
    if let Some(predicted) = proof.predicted {
        let _ = write!(text, ", predicted {}", ratio(predicted));
    }
    if with_machine && !proof.machine.is_empty() {
        let _ = write!(text, ", {}", proof.machine);
    }
    format!("{text}; {:.0} s", proof.seconds)
}

fn percent(share: Option<f64>) -> String {
    match share {
        Some(share) => figures::percent(share),
        None => "-".to_owned(),
    }
}
