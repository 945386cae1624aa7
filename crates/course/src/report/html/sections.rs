//! The report's tables.

use crate::analysis::verdict::Analysis;
use crate::measurement::record::Record;
use maud::{Markup, html};

use crate::report::{rows::rows, table};
use drawing::html::{scrolled, section};
use drawing::table::{Column, Table, sentence_case};

/// Writes predictions, root causes, effects and guardrails side by side.
pub(super) fn claims(record: &Record, analysis: &Analysis) -> Markup {
    let rows = rows(record, analysis).into_iter().map(|row| {
        let name = if row.label.is_empty() {
            sentence_case(&row.name)
        } else {
            format!("{}: {}", row.label, row.name)
        };
        vec![name, row.problem, row.fix, row.remark]
    });
    let columns = [
        Column::text(""),
        Column::figures("problem"),
        Column::figures(&record.variant),
        Column::text(""),
    ];
    let table = Table::new(columns, rows.collect());
    let content = html! {
        @if let Some(prediction) = &analysis.prediction { p { (prediction.sentence) } }
        (scrolled(&table, "Predicted and measured", "claim"))
        p {
            "Scenarios: "
            @for (index, (name, scenario)) in record.chapter.scenarios.iter().enumerate() {
                @if index > 0 { "; " }
                (name) ", " (scenario.in_words())
            }
            ". Closed loop: a user waits for the answer before asking again."
        }
    };
    section("claims", "Predicted and measured", &content)
}

/// Writes the chapter's table, if it was measured.
pub(super) fn matrix(record: &Record) -> Markup {
    let tables = table::matrix_tables(record);
    let content = html! {
        @for table in &tables { (scrolled(table, &table.columns[0].head, "variants")) }
    };
    html! { @if !tables.is_empty() { (section("matrix", "All variants", &content)) } }
}

/// Writes all rounds' raw figures.
pub(super) fn rounds(record: &Record) -> Markup {
    let content = html! {
        p {
            "Unanswered requests were still waiting when the round ended, so their latencies are unknown. "
            "\"over\" marks a figure that depends on them: the true one is at least as large."
        }
        (scrolled(&table::rounds(record), "All rounds", "raw"))
    };
    section("rounds", "All rounds", &content)
}

/// Writes the machine and the tools.
pub(super) fn environment(record: &Record) -> Markup {
    let content = html! {
        dl {
            @for (name, value) in table::environment_rows(record) {
                div { dt { (name) } dd { (value) } }
            }
        }
    };
    section("environment", "Where it was measured", &content)
}

/// Figures published by others.
pub(super) fn published(record: &Record) -> Markup {
    let content = html! {
        p { "Measured by others, on other machines: no part of this proof." }
        (scrolled(&table::published_table(record), "Published elsewhere", "published"))
    };
    html! {
        @if !record.references.is_empty() { (section("published", "Published elsewhere", &content)) }
    }
}
