//! The report's tables.

use analysis::verdict::Analysis;
use maud::{Markup, html};
use measurement::record::Record;

use crate::{
    rows::rows,
    table::{self, Table},
};

/// A table that a narrow page scrolls; the first cell of a row is its heading.
pub(crate) fn scrolled(table: &Table, label: &str, class: &str) -> Markup {
    html! {
        div.scroll.(class) tabindex="0" role="region" aria-label=(label) {
            table {
                thead { tr { @for (head, number) in &table.heads { th.number[*number] scope="col" { (head) } } } }
                tbody {
                    @for row in &table.rows {
                        tr {
                            th.number[table.heads[0].1] scope="row" { (row[0]) }
                            @for (cell, (_, number)) in row.iter().zip(&table.heads).skip(1) { td.number[*number] { (cell) } }
                        }
                    }
                }
            }
        }
    }
}

/// Predictions, root causes, effects and guardrails side by side.
pub(super) fn claims(record: &Record, analysis: &Analysis) -> Markup {
    let rows = rows(record, analysis).into_iter().map(|row| {
        let name = if row.label.is_empty() {
            table::sentence_case(&row.name)
        } else {
            format!("{}: {}", row.label, row.name)
        };
        vec![name, row.problem, row.fix, row.remark]
    });
    let mut table = Table::new(&[""], &["problem", &record.variant], rows.collect());
    table.heads.push((String::new(), false));
    html! {
        section aria-labelledby="claims" {
            h2 #claims { "Predicted and measured" }
            @if let Some(prediction) = &analysis.prediction { p { (prediction.sentence) } }
            (scrolled(&table, "Predicted and measured", "claim"))
            (scenarios(record))
        }
    }
}

fn scenarios(record: &Record) -> Markup {
    html! {
        p {
            "Scenarios: "
            @for (index, (name, scenario)) in record.chapter.scenarios.iter().enumerate() {
                @if index > 0 { "; " }
                (name) ", " (scenario.in_words())
            }
            ". Closed loop: a user waits for the answer before asking again."
        }
    }
}

/// The chapter's table, where it was measured.
pub(super) fn matrix(record: &Record) -> Markup {
    let tables = table::matrix_tables(record);
    html! {
        @if !tables.is_empty() {
            section aria-labelledby="matrix" {
                h2 #matrix { "All variants" }
                @for table in &tables { (scrolled(table, &table.heads[0].0, "variants")) }
            }
        }
    }
}

/// All rounds' raw figures.
pub(super) fn rounds(record: &Record) -> Markup {
    html! {
        section aria-labelledby="rounds" {
            h2 #rounds { "All rounds" }
            p {
                "Unanswered requests were still waiting when the round ended; their latencies are unknown, and "
                "where they are the most, \"over\" marks those of the others."
            }
            (scrolled(&table::rounds_in_full(record), "All rounds", "raw"))
        }
    }
}

/// The machine and the tools.
pub(super) fn environment(record: &Record) -> Markup {
    html! {
        section aria-labelledby="environment" {
            h2 #environment { "Where it was measured" }
            dl {
                @for (name, value) in table::environment_rows(record) {
                    div { dt { (name) } dd { (value) } }
                }
            }
        }
    }
}

/// Somebody else's figures.
pub(super) fn published(record: &Record) -> Markup {
    html! {
        @if !record.references.is_empty() {
            section aria-labelledby="published" {
                h2 #published { "Published elsewhere" }
                p { "Measured by others, on other machines: no part of this proof." }
                (scrolled(&table::published_table(record), "Published elsewhere", "published"))
            }
        }
    }
}
