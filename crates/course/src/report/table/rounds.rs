//! Tables of the rounds' raw figures.

use super::sourced;
use crate::measurement::{
    claim::LoadMetric,
    record::{Purpose, Record, Round},
};
use crate::report::rows::known;
use drawing::table::{Column, Table};
use engine::outcome::{GeneratorKind, Outcome};
use statistics::figures;

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
        known(round.server_cpu_s, |s| format!("{s:.2} s"))
    }),
];

fn cpu_share(outcome: &Outcome) -> String {
    known(outcome.generator.cpu_share, figures::percent)
}

/// Formats every round's raw figures, for the book.
pub fn rounds(record: &Record) -> String {
    let mut columns = Vec::new();
    for (book, _, figure) in COLUMNS {
        columns.extend(book.map(|head| (head, figure)));
    }
    let in_book = table(
        record,
        |round| purpose_in_words(round.purpose).to_owned(),
        &columns,
    );
    sourced(&in_book, record)
}

/// Collects the rounds' raw figures with more columns, for the report.
pub(crate) fn rounds_in_full(record: &Record) -> Table {
    let columns = COLUMNS.map(|(_, report, figure)| (report, figure));
    table(record, purpose_and_generator, &columns)
}

fn purpose_and_generator(round: &Round) -> String {
    let why = purpose_in_words(round.purpose);
    match round.outcome.generator.name {
        GeneratorKind::Embedded => why.to_owned(),
        other => format!("{why}, {other}"),
    }
}

fn table(record: &Record, why: fn(&Round) -> String, columns: &[(&str, Figure)]) -> Table {
    let mut rows = Vec::new();
    for (place, round) in record.rounds.iter().enumerate() {
        let mut row = vec![
            (place + 1).to_string(),
            why(round),
            round.variant.clone(),
            round.scenario.clone(),
        ];
        for (_, figure) in columns {
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
        Purpose::RootCause => "root cause",
        Purpose::Matrix => "table",
        Purpose::Law => "the law's input",
        Purpose::Series => "connections",
        Purpose::Baseline => "baseline",
        Purpose::Disturbed => "set aside: disturbed",
    }
}
