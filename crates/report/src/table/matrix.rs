//! The chapter's table of variants and settings.

use std::fmt::Write as _;

use super::{beside, provenance, unknown};
use analysis::verdict::median_of;
use measurement::{
    chapter_file::{Beside, Setting},
    figures,
    record::{Purpose, Record, Round},
};

/// One of the chapter's tables: headings and cells, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cells {
    /// What the figures are.
    pub(crate) title: String,
    /// The settings.
    pub(crate) columns: Vec<String>,
    /// Each variant with its figures, a column each.
    pub(crate) rows: Vec<(String, Vec<String>)>,
}

/// The effect's metric first, then what the chapter shows beside its mechanism. Every cell is the
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
        let setting = chapter.setting(name);
        setting.map_or_else(|| name.clone(), Setting::in_words)
    };
    let table = |title: &str, cell: &dyn Fn(&str, &str) -> String| {
        let row = |variant: &String| {
            let figures = matrix.settings.iter();
            (
                variant.clone(),
                figures.map(|setting| cell(variant, setting)).collect(),
            )
        };
        Cells {
            title: title.to_owned(),
            columns: matrix.settings.iter().map(heading).collect(),
            rows: matrix.variants.iter().map(row).collect(),
        }
    };
    let effect = table(&matrix.title, &|variant, setting| {
        effect_cell(record, variant, setting)
    });
    let others = chapter.beside.iter().map(|beside| {
        table(&beside.name, &|variant, setting| {
            beside_cell(record, beside, variant, setting)
        })
    });
    std::iter::once(effect).chain(others).collect()
}

fn effect_cell(record: &Record, variant: &str, setting: &str) -> String {
    let metric = record.chapter.effect.metric;
    let value = |variant: &str| {
        let rounds: Vec<&Round> = rounds_of(record, setting).collect();
        median_of(metric, &rounds, variant)
    };
    let matrix = record.chapter.matrix.as_ref();
    let first = matrix.and_then(|matrix| matrix.variants.first());
    let Some(own) = value(variant) else {
        return unknown();
    };
    let text = metric.text(own);
    let other = first.filter(|first| *first != variant);
    match other.and_then(|first| value(first)) {
        Some(of_first) => format!("{text} ({}x)", figures::ratio(metric.gain(of_first, own))),
        None => text,
    }
}

fn beside_cell(record: &Record, beside: &Beside, variant: &str, setting: &str) -> String {
    let rounds = rounds_of(record, setting).filter(|round| round.variant == variant);
    let value = beside::median(rounds, beside);
    value.map_or_else(unknown, |value| beside.unit.text(value))
}

fn rounds_of<'a>(record: &'a Record, setting: &'a str) -> impl Iterator<Item = &'a Round> {
    record
        .rounds_for(Purpose::Matrix)
        .filter(move |round| round.setting == setting)
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
