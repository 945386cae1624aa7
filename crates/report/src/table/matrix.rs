//! The chapter's table of variants and scenarios.

use std::fmt::Write as _;

use crate::{
    provenance::provenance,
    rows::{median_reading, unknown},
};
use analysis::finding::median_of;
use measurement::{
    chapter_file::{Scenario, Secondary},
    figures,
    record::{Purpose, Record, Round},
};

/// One of the chapter's tables: headings and cells, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cells {
    /// What the figures are.
    pub(crate) title: String,
    /// The scenarios.
    pub(crate) columns: Vec<String>,
    /// Each variant with its figures, a column each.
    pub(crate) rows: Vec<(String, Vec<String>)>,
}

/// The effect's metric first, then what the chapter shows beside its root cause. Every cell is the
/// median of its rounds; of the effect's metric also how many times better than the first row it is.
/// None for a chapter without a table, or where it was not measured.
pub(crate) fn cells(record: &Record) -> Vec<Cells> {
    let chapter = &record.chapter;
    let Some(matrix) = &chapter.matrix else {
        return Vec::new();
    };
    if record.rounds_for(Purpose::Matrix).next().is_none() {
        return Vec::new();
    }
    let heading = |name: &String| {
        let scenario = chapter.scenario(name);
        scenario.map_or_else(|| name.clone(), Scenario::in_words)
    };
    let table = |title: &str, cell: &dyn Fn(&str, &str) -> String| {
        let row = |variant: &String| {
            let figures = matrix.scenarios.iter();
            (
                variant.clone(),
                figures.map(|scenario| cell(variant, scenario)).collect(),
            )
        };
        Cells {
            title: title.to_owned(),
            columns: matrix.scenarios.iter().map(heading).collect(),
            rows: matrix.variants.iter().map(row).collect(),
        }
    };
    let effect = table(&matrix.title, &|variant, scenario| {
        effect_cell(record, variant, scenario)
    });
    let others = chapter.secondary.iter().map(|one| {
        table(&one.name, &|variant, scenario| {
            secondary_cell(record, one, variant, scenario)
        })
    });
    std::iter::once(effect).chain(others).collect()
}

fn effect_cell(record: &Record, variant: &str, scenario: &str) -> String {
    let effect = record.chapter.claims.effect();
    let Some(quantity) = &effect.quantity else {
        return unknown();
    };
    let rounds: Vec<&Round> = rounds_of(record, scenario).collect();
    let value = |variant: &str| median_of(quantity, &rounds, variant);
    let matrix = record.chapter.matrix.as_ref();
    let first = matrix.and_then(|matrix| matrix.variants.first());
    let Some(own) = value(variant) else {
        return unknown();
    };
    let text = quantity.text(effect.unit, own);
    let other = first.filter(|first| *first != variant);
    match other.and_then(|first| value(first)) {
        Some(of_first) => format!("{text} ({}x)", figures::ratio(quantity.gain(of_first, own))),
        None => text,
    }
}

fn secondary_cell(record: &Record, one: &Secondary, variant: &str, scenario: &str) -> String {
    let rounds = rounds_of(record, scenario).filter(|round| round.variant == variant);
    median_reading(rounds, one).map_or_else(unknown, |value| one.unit.text(value))
}

fn rounds_of<'a>(record: &'a Record, scenario: &'a str) -> impl Iterator<Item = &'a Round> {
    record
        .rounds_for(Purpose::Matrix)
        .filter(move |round| round.scenario == scenario)
}

/// The tables in Markdown; empty where there are none.
pub fn matrix(record: &Record) -> String {
    let tables = cells(record);
    if tables.is_empty() {
        return String::new();
    }
    let mut text = String::new();
    for cells in tables {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "| {} | {} |\n| --- |{}",
            cells.title,
            cells.columns.join(" | "),
            " ---: |".repeat(cells.columns.len())
        );
        for (variant, figures) in &cells.rows {
            let _ = writeln!(text, "| `{variant}` | {} |", figures.join(" | "));
        }
        text.push('\n');
    }
    text + &provenance(record)
}
