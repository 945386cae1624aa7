//! Tables of the rounds' raw figures.

use super::sourced;
use crate::measurement::{
    claim::LoadMetric,
    record::{Purpose, Record, Round},
};
use crate::report::rows::unknown;
use drawing::table::{Column, Table};
use engine::{
    figures,
    outcome::{GeneratorKind, Outcome},
};

/// A figure of a round: its heading in the book (if it appears there), its heading in the report, and the
/// function that formats it.
type Shown = (Option<&'static str>, &'static str, Figure);
type Figure = fn(&Round) -> String;

const COLUMNS: [Shown; 9] = [
    (Some("answers"), "answers", |round| {
        figures::count(round.outcome.completed as f64)
    }),
    (Some("requests per second"), "a second", |round| {
        LoadMetric::RequestsPerSecond.text(round.outcome.requests_per_second)
    }),
    (Some("median"), "median", |round| {
        LoadMetric::P50Ms.text_of(&round.outcome)
    }),
    (Some("p99"), "p99", |round| {
        LoadMetric::P99Ms.text_of(&round.outcome)
    }),
    (None, "slowest", |round| {
        figures::milliseconds(round.outcome.latency.max_ms)
    }),
    (None, "unanswered", |round| {
        figures::count(round.outcome.unfinished as f64)
    }),
    (Some("errors"), "errors", |round| {
        figures::count(round.outcome.error_count() as f64)
    }),
    (Some("generator"), "generator CPU", |round| {
        cpu_share(&round.outcome)
    }),
    (Some("server CPU"), "server CPU", |round| {
        round
            .server_cpu_s
            .map_or_else(unknown, |s| format!("{s:.2} s"))
    }),
];

fn cpu_share(outcome: &Outcome) -> String {
    outcome
        .generator
        .cpu_share
        .map_or_else(unknown, figures::percent)
}

/// Formats every round's raw figures, for the book.
pub fn rounds(record: &Record) -> String {
    let columns = COLUMNS
        .iter()
        .filter_map(|(book, _, figure)| Some(((*book)?, *figure)));
    let why = |round: &Round| purpose_in_words(round.purpose).to_owned();
    sourced(&table(record, why, &columns.collect::<Vec<_>>()), record)
}

/// Collects the rounds' raw figures with more columns, for the report.
pub(crate) fn rounds_in_full(record: &Record) -> Table {
    let columns = COLUMNS.map(|(_, report, figure)| (report, figure));
    let why = |round: &Round| {
        let why = purpose_in_words(round.purpose);
        match round.outcome.generator.name {
            GeneratorKind::Embedded => why.to_owned(),
            other => format!("{why}, {other}"),
        }
    };
    table(record, why, &columns)
}

fn table(record: &Record, why: fn(&Round) -> String, columns: &[(&str, Figure)]) -> Table {
    let row = |(round, number): (&Round, u32)| {
        let names = [
            number.to_string(),
            why(round),
            round.variant.clone(),
            round.scenario.clone(),
        ];
        let figures = columns.iter().map(|(_, figure)| figure(round));
        names.into_iter().chain(figures).collect()
    };
    let rows = record.rounds.iter().zip(1..).map(row).collect();
    let mut heads = vec![
        Column::figures("round"),
        Column::text("why"),
        Column::text("variant"),
        Column::text("scenario"),
    ];
    for (head, _) in columns {
        heads.push(Column::figures(*head));
    }
    Table::new(heads, rows)
}

/// Formats the purpose of a round for a table.
fn purpose_in_words(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Equal => "the fix again (A/A)",
        Purpose::Claim => "claim",
        Purpose::Agreement => "agreement",
        Purpose::RootCause => "root cause",
        Purpose::Matrix => "table",
        Purpose::Law => "the law's input",
        Purpose::Series => "connections",
        Purpose::Baseline => "baseline",
        Purpose::Disturbed => "set aside: disturbed",
    }
}
