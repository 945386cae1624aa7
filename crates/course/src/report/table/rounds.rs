//! The rounds' raw figures.

use crate::measurement::{
    claim::LoadMetric,
    record::{Purpose, Record, Round},
};
use crate::report::rows::known;
use drawing::table::{Column, Table};
use engine::outcome::{GeneratorKind, Outcome};
use statistics::figures;

/// A figure of a round: its heading, and the function that formats it.
type Shown = (&'static str, fn(&Round) -> String);

const COLUMNS: [Shown; 9] = [
    ("answers", |round| {
        figures::count(round.outcome.completed as f64)
    }),
    ("a second", |round| {
        LoadMetric::RequestsPerSecond.text(round.outcome.requests_per_second)
    }),
    ("median", |round| LoadMetric::P50Ms.text_of(&round.outcome)),
    ("p99", |round| LoadMetric::P99Ms.text_of(&round.outcome)),
    ("slowest", |round| {
        figures::milliseconds(round.outcome.latency.max_ms)
    }),
    ("unanswered", |round| {
        figures::count(round.outcome.unfinished as f64)
    }),
    ("errors", |round| {
        figures::count(round.outcome.error_count() as f64)
    }),
    ("generator CPU", |round| cpu_share(&round.outcome)),
    ("server CPU", |round| {
        known(round.server_cpu_s, |s| format!("{s:.2} s"))
    }),
];

fn cpu_share(outcome: &Outcome) -> String {
    known(outcome.generator.cpu_share, figures::percent)
}

fn purpose_and_generator(round: &Round) -> String {
    let why = purpose_in_words(round.purpose);
    match round.outcome.generator.name {
        GeneratorKind::Embedded => why.to_owned(),
        other => format!("{why}, {other}"),
    }
}

/// Collects every round's raw figures.
pub(crate) fn rounds(record: &Record) -> Table {
    let mut rows = Vec::new();
    for (place, round) in record.rounds.iter().enumerate() {
        let mut row = vec![
            (place + 1).to_string(),
            purpose_and_generator(round),
            round.variant.clone(),
            round.scenario.clone(),
        ];
        for (_, figure) in COLUMNS {
            row.push(figure(round));
        }
        rows.push(row);
    }
    let mut heads = vec![
        Column::figures("round"),
        Column::text("why"),
        Column::text("variant"),
        Column::text("scenario"),
    ];
    for (head, _) in COLUMNS {
        heads.push(Column::figures(head));
    }
    Table::new(heads, rows)
}

/// Formats the purpose of a round for a table.
fn purpose_in_words(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Equal => "the fix again (A/A)",
        Purpose::Claim => "claim",
        Purpose::RootCause => "root cause",
        Purpose::Matrix => "table",
        Purpose::Law => "the law's input",
        Purpose::Series => "counts over time",
        Purpose::Baseline => "baseline",
        Purpose::Disturbed => "set aside: disturbed",
    }
}
