//! The report's tables.

use maud::{Markup, html};

use crate::{
    capture::Capture,
    table::{self, effect_in_words, median_text, purpose_in_words},
};
use analysis::verdict::{Analysis, limit_in_words};
use measurement::{
    claim::{Metric, PROBLEM, SOLUTION},
    figures,
    outcome::GeneratorKind,
    record::Record,
};

/// Prediction, mechanism and effect side by side.
pub(super) fn claim(capture: &Capture, analysis: &Analysis) -> Markup {
    let record = &capture.record;
    let chapter = &record.chapter;
    let (mechanism, effect) = (&analysis.mechanism, &analysis.effect);
    let count = |value: Option<f64>| value.map_or_else(unknown, figures::count);
    let prediction = analysis.prediction.as_ref();
    let bounds = prediction.and_then(|prediction| prediction.problem.zip(prediction.solution));
    let bound_text =
        |bound: Option<f64>| bound.map_or_else(String::new, |bound| figures::count(bound.round()));
    html! {
        section aria-labelledby="claim" {
            h2 #claim { "Predicted and measured" }
            @if let Some(prediction) = &analysis.prediction { p { (prediction.sentence) } }
            div.scroll.claim tabindex="0" role="region" aria-label="Predicted and measured" {
                table {
                    thead { tr { th scope="col" {} th.number scope="col" { "problem" } th.number scope="col" { "solution" } th scope="col" {} } }
                    tbody {
                        tr {
                            th scope="row" { "Law: " (chapter.law.name()) @if bounds.is_some() { ", requests a second at most" } }
                            td.number { (bound_text(bounds.map(|(problem, _)| problem))) }
                            td.number { (bound_text(bounds.map(|(_, solution)| solution))) }
                            td.remark { (table::law_in_words(analysis)) }
                        }
                        tr {
                            th scope="row" { "Mechanism: " (mechanism.name) }
                            td.number { (count(mechanism.problem)) }
                            td.number { (count(mechanism.solution)) }
                            td.remark { "claimed: " (limit_in_words(chapter.mechanism.problem, chapter.mechanism_users())) ", "
                                (limit_in_words(chapter.mechanism.solution, chapter.mechanism_users())) }
                        }
                        @for beside in &chapter.beside {
                            tr {
                                th scope="row" { (table::sentence_case(&beside.name)) }
                                @for variant in [PROBLEM, SOLUTION] {
                                    td.number { (table::beside_text(record, beside, variant).unwrap_or_else(unknown)) }
                                }
                                td.remark {}
                            }
                        }
                        tr {
                            th scope="row" { "Effect: " (effect.metric.label()) }
                            td.number { (median_text(record, effect.metric, PROBLEM)) }
                            td.number { (median_text(record, effect.metric, SOLUTION)) }
                            td.remark { (effect_in_words(analysis)) }
                        }
                        @for metric in [Metric::RequestsPerSecond, Metric::P50Ms, Metric::P99Ms] {
                            @if metric != effect.metric {
                                tr {
                                    th scope="row" { (table::sentence_case(metric.label())) }
                                    @for variant in [PROBLEM, SOLUTION] {
                                        td.number { (median_text(record, metric, variant)) }
                                    }
                                    td.remark {}
                                }
                            }
                        }
                        @for claim in table::other_claims(record, analysis) {
                            tr {
                                th scope="row" { (table::sentence_case(&claim.name)) }
                                td.number { (claim.problem) }
                                td.number { (claim.solution) }
                                td.remark { (claim.remark) }
                            }
                        }
                    }
                }
            }
            (settings(record))
        }
    }
}

fn settings(record: &Record) -> Markup {
    html! {
        p {
            "Settings: "
            @for (index, (name, setting)) in record.chapter.settings.iter().enumerate() {
                @if index > 0 { "; " }
                (name) ", " (setting.in_words())
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
                            ("round", true), ("why", false), ("variant", false), ("setting", false),
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
                                td { (round.setting) }
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

fn unknown() -> String {
    "unknown".to_owned()
}
