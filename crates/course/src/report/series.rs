//! Proofs of the same claims at different times. The interval of one proof shows how far its rounds differ;
//! only another proof shows how far two days differ.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::analysis::verdict::{Analysis, VerdictKind};
use crate::measurement::record::Record;
use drawing::table::{Column, Table};
use serde::{Deserialize, Serialize};
use statistics::figures::{self, ratio};

/// Number of a chapter's latest proofs on one machine that the table shows.
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

/// Formats the latest proofs of each chapter on each machine beside each other, and how far they lie apart. Early
/// proofs, which did not keep their machine, are left out.
pub fn table(proofs: &[Proof]) -> String {
    let columns = [
        Column::figures("chapter"),
        Column::text("machine"),
        Column::text("proofs, with the effect, its 95 % interval and the seconds to the verdict"),
        Column::figures("apart"),
        Column::figures("one interval is as wide as"),
    ];
    let mut groups: BTreeMap<(u32, &str), Vec<&Proof>> = BTreeMap::new();
    for proof in proofs {
        if !proof.machine.is_empty() {
            let group = groups.entry((proof.chapter, &proof.machine)).or_default();
            group.push(proof);
        }
    }
    let (mut rows, mut started) = (Vec::new(), BTreeSet::new());
    for ((chapter, machine), group) in groups {
        let latest = &group[group.len().saturating_sub(SHOWN)..];
        let mut lines = Vec::new();
        let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
        let (mut effects, mut widest) = (0, None::<f64>);
        for proof in latest {
            lines.push(line(proof));
            started.insert(proof.started.as_str());
            if let Some(effect) = proof.effect {
                effects += 1;
                (least, most) = (least.min(effect), most.max(effect));
            }
            if let Some((low, high)) = proof.interval {
                let width = high / low - 1.0;
                widest = Some(widest.map_or(width, |widest| widest.max(width)));
            }
        }
        rows.push(vec![
            chapter.to_string(),
            machine.to_owned(),
            lines.join("<br>"),
            percent((effects > 1).then_some(most / least - 1.0)),
            percent(widest),
        ]);
    }
    let mut text = Table::new(columns, rows).markdown();
    if let (Some(first), Some(last)) = (started.first(), started.last()) {
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

/// Shortens `2026-01-31T12:59:59Z` to `2026-01-31 12:59`.
fn minute(time: &str) -> String {
    time.get(..16).unwrap_or(time).replace('T', " ")
}

/// Formats one proof.
fn line(proof: &Proof) -> String {
    let mut text = format!("{}: ", proof.verdict);
    match proof.effect {
        Some(effect) => {
            let _ = write!(text, "{} times", ratio(effect));
        }
        None => text += "no effect",
    }
    if let Some((low, high)) = proof.interval {
        let _ = write!(text, " ({} to {})", ratio(low), ratio(high));
    }
    if let Some(predicted) = proof.predicted {
        let _ = write!(text, ", predicted {}", ratio(predicted));
    }
    format!("{text}; {:.0} s", proof.seconds)
}

fn percent(share: Option<f64>) -> String {
    match share {
        Some(share) => figures::percent(share),
        None => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proof(machine: &str, effect: f64) -> Proof {
        Proof {
            chapter: 6,
            started: "2026-01-31T12:59:59Z".to_owned(),
            commit: "0123456789ab".to_owned(),
            machine: machine.to_owned(),
            verdict: VerdictKind::Proved,
            seconds: 30.0,
            effect: Some(effect),
            interval: Some((0.9 * effect, 1.1 * effect)),
            predicted: None,
        }
    }

    #[test]
    fn proofs_are_compared_with_those_of_the_same_machine() {
        let proofs = [
            proof("", 5.0),
            proof("small", 2.0),
            proof("large", 18.0),
            proof("small", 2.2),
        ];
        let text = table(&proofs);
        assert!(
            text.contains("| 6 | large | proved: 18.0 times (16.2 to 19.8); 30 s | - |"),
            "{text}"
        );
        assert!(
            text.contains("| 6 | small | proved: 2.00 times") && text.contains("| 10 % |"),
            "{text}"
        );
        assert!(!text.contains("5.00 times"), "{text}");
    }
}
