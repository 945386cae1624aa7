//! A capture in Markdown, for the book to include: no measured number is typed by hand.

mod baselines;
mod environment;
mod matrix;
mod rounds;
mod values;

use std::fmt::Write as _;

use analysis::verdict::Analysis;
use measurement::record::Record;

pub use self::{
    baselines::baselines,
    environment::environment,
    matrix::matrix,
    rounds::{agreement, rounds},
    values::values,
};
pub(crate) use self::{
    environment::environment_rows,
    matrix::{Cells, cells as matrix_cells},
    rounds::purpose_in_words,
};
use crate::{provenance::provenance, rows::rows};

/// The chapter's figures: both variants side by side, predictions and verdict.
pub fn table(record: &Record, analysis: &Analysis) -> String {
    let mut text = format!(
        "| | | problem | {} | |\n| --- | --- | ---: | ---: | --- |\n",
        record.variant
    );
    for row in rows(record, analysis) {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} |",
            row.label, row.name, row.problem, row.fix, row.remark
        );
    }
    let _ = writeln!(
        text,
        "\nVerdict: **{}**. {}\n\n{}",
        analysis.verdict.kind,
        sentence_case(&analysis.verdict.reason),
        provenance(record)
    );
    text.trim_end().to_owned() + "\n"
}

/// Figures published elsewhere, each with what to know about it.
pub fn published(record: &Record) -> String {
    let mut text =
        String::from("| published elsewhere | figure | to know |\n| --- | ---: | --- |\n");
    for figure in &record.references {
        let _ = writeln!(
            text,
            "| {} | {} | {} |",
            figure.label,
            figure.value,
            figure.caveat.as_deref().unwrap_or("")
        );
    }
    text
}

/// A reason begins a sentence of its own in the book.
pub(crate) fn sentence_case(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}
