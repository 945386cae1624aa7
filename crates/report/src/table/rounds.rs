//! Round by round: raw figures, and what other generators saw.

use std::fmt::Write as _;

use crate::{provenance::provenance, rows::unknown};
use measurement::{
    claim::Metric,
    figures,
    outcome::GeneratorKind,
    record::{Purpose, Record, Round},
};

/// Every round's raw figures.
pub fn rounds(record: &Record) -> String {
    let mut text = String::from(
        "| round | why | variant | scenario | answers | requests per second | median | p99 | errors | generator | server CPU |\n\
         | ---: | --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for (round, number) in record.rounds.iter().zip(1..) {
        let outcome = &round.outcome;
        let _ = writeln!(
            text,
            "| {number} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            purpose_in_words(round.purpose),
            round.variant,
            round.scenario,
            figures::count(outcome.completed as f64),
            Metric::RequestsPerSecond.text(outcome.requests_per_second),
            Metric::P50Ms.text_of(outcome),
            Metric::P99Ms.text_of(outcome),
            figures::count(outcome.error_count() as f64),
            outcome
                .generator
                .cpu_share
                .map_or_else(unknown, figures::percent),
            round
                .server_cpu_s
                .map_or_else(unknown, |s| format!("{s:.2} s")),
        );
    }
    let _ = write!(text, "\n{}", provenance(record));
    text
}

/// What the three generators saw of the same load; empty without such rounds.
pub fn agreement(record: &Record) -> String {
    let rounds: Vec<&Round> = record.rounds_for(Purpose::Agreement).collect();
    let Some(own) = rounds
        .iter()
        .find(|round| round.outcome.generator.name == GeneratorKind::Embedded)
    else {
        return String::new();
    };
    let mut text = String::from(
        "| generator | users | requests per second | against embedded | median | against embedded | its CPU time |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    let off = |metric: Metric, round: &Round| {
        let both = metric.of(&round.outcome).zip(metric.of(&own.outcome));
        both.map_or_else(unknown, |(theirs, ours)| {
            format!("{:+.1} %", (theirs / ours - 1.0) * 100.0)
        })
    };
    for round in &rounds {
        let outcome = &round.outcome;
        let _ = writeln!(
            text,
            "| {} {} | {} | {} | {} | {} | {} | {} |",
            outcome.generator.name,
            outcome.generator.version,
            figures::count(outcome.generator.users.into()),
            Metric::RequestsPerSecond.text(outcome.requests_per_second),
            off(Metric::RequestsPerSecond, round),
            outcome
                .latency
                .at(0.5)
                .map_or_else(unknown, figures::milliseconds),
            off(Metric::P50Ms, round),
            outcome
                .generator
                .cpu_share
                .map_or_else(unknown, figures::percent),
        );
    }
    let _ = write!(text, "\n{}", provenance(record));
    text
}

/// Why a round was run, for a table.
pub(crate) fn purpose_in_words(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Equal => "noise (A/A)",
        Purpose::Claim => "claim (ABBA)",
        Purpose::Agreement => "agreement",
        Purpose::RootCause => "root cause",
        Purpose::Matrix => "table",
        Purpose::Law => "the law's input",
        Purpose::Series => "connections",
        Purpose::Baseline => "baseline",
    }
}
