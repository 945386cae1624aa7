//! The report's tables.

use analysis::verdict::Analysis;
use maud::{Markup, html};
use measurement::{claim::Metric, figures, outcome::GeneratorKind, record::Record};

use crate::{
    rows::{rows, unknown},
    table::{self, purpose_in_words},
};

/// Predictions, root causes, effects and guardrails side by side.
pub(super) fn claims(record: &Record, analysis: &Analysis) -> Markup {
    html! {
        section aria-labelledby="claims" {
            h2 #claims { "Predicted and measured" }
            @if let Some(prediction) = &analysis.prediction { p { (prediction.sentence) } }
            div.scroll.claim tabindex="0" role="region" aria-label="Predicted and measured" {
                table {
                    thead { tr { th scope="col" {} th.number scope="col" { "problem" } th.number scope="col" { (record.variant) } th scope="col" {} } }
                    tbody {
                        @for row in rows(record, analysis) {
                            tr {
                                th scope="row" {
                                    @if row.label.is_empty() { (table::sentence_case(&row.name)) } @else { (row.label) ": " (row.name) }
                                }
                                td.number { (row.problem) }
                                td.number { (row.fix) }
                                td.remark { (row.remark) }
                            }
                        }
                    }
                }
            }
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
    let tables = table::matrix_cells(record);
    html! {
        @if !tables.is_empty() {
            section aria-labelledby="matrix" {
                h2 #matrix { "All variants" }
                @for cells in &tables { (matrix_table(cells)) }
            }
        }
    }
}

fn matrix_table(cells: &table::Cells) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(cells.title) {
            table {
                thead { tr {
                    th scope="col" { (cells.title) }
                    @for column in &cells.columns { th.number scope="col" { (column) } }
                } }
                tbody {
                    @for (variant, figures) in &cells.rows {
                        tr {
                            th scope="row" { (variant) }
                            @for figure in figures { td.number { (figure) } }
                        }
                    }
                }
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
            div.scroll tabindex="0" role="region" aria-label="All rounds" {
                table.raw {
                    thead { tr {
                        @for (heading, number) in [
                            ("round", true), ("why", false), ("variant", false), ("scenario", false),
                            ("answers", true), ("a second", true), ("median", true), ("p99", true), ("slowest", true), ("unanswered", true),
                            ("errors", true), ("generator CPU", true), ("server CPU", true),
                        ] {
                            th.number[number] scope="col" { (heading) }
                        }
                    } }
                    tbody {
                        @for (index, round) in record.rounds.iter().enumerate() {
                            @let outcome = &round.outcome;
                            tr {
                                th.number scope="row" { (index + 1) }
                                td {
                                    (purpose_in_words(round.purpose))
                                    @if outcome.generator.name != GeneratorKind::Embedded { ", " (outcome.generator.name) }
                                }
                                td { (round.variant) }
                                td { (round.scenario) }
                                td.number { (figures::count(outcome.completed as f64)) }
                                td.number { (Metric::RequestsPerSecond.text(outcome.requests_per_second)) }
                                td.number { (Metric::P50Ms.text_of(outcome)) }
                                td.number { (Metric::P99Ms.text_of(outcome)) }
                                td.number { (figures::milliseconds(outcome.latency.max_ms)) }
                                td.number { (figures::count(outcome.unfinished as f64)) }
                                td.number { (figures::count(outcome.error_count() as f64)) }
                                td.number { (outcome.generator.cpu_share.map_or_else(unknown, figures::percent)) }
                                td.number { (round.server_cpu_s.map_or_else(unknown, |s| format!("{s:.2} s"))) }
                            }
                        }
                    }
                }
            }
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
                div.scroll tabindex="0" role="region" aria-label="Published elsewhere" {
                    table {
                        thead { tr { th scope="col" { "what" } th.number scope="col" { "published" } th scope="col" { "to know" } } }
                        tbody {
                            @for figure in &record.references {
                                tr {
                                    th scope="row" { (figure.label) }
                                    td.number { (figure.value) }
                                    td { (figure.caveat.as_deref().unwrap_or("")) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
