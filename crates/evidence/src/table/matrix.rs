//! The chapter's table of variants and settings.

use std::fmt::Write as _;

use super::{provenance, unknown};
use crate::{
    chapter_file::Setting,
    figures,
    record::{Purpose, Record, Round},
    verdict::median_of,
};

/// Headings and cells, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cells {
    /// What the figures are.
    pub(crate) title: String,
    /// The settings.
    pub(crate) columns: Vec<String>,
    /// Each variant with its figures, a column each.
    pub(crate) rows: Vec<(String, Vec<String>)>,
}

/// Every cell the median of its rounds, with how many times better than the first row it is; `None`
/// for a chapter without a table, or where it was not measured.
pub(crate) fn cells(record: &Record) -> Option<Cells> {
    record.rounds_for(Purpose::Matrix).next()?;
    let chapter = &record.chapter;
    let matrix = chapter.matrix.as_ref()?;
    let heading = |name: &String| {
        let setting = chapter.setting(name);
        setting.map_or_else(|| name.clone(), Setting::in_words)
    };
    let first = matrix.variants.first()?;
    let row = |variant: &String| {
        let figures = matrix.settings.iter().map(|setting| {
            let value = median(record, variant, setting);
            let text = value.map_or_else(unknown, |v| chapter.effect.metric.text(v));
            match value.zip(median(record, first, setting)) {
                Some((value, of_first)) if variant != first => {
                    let gain = chapter.effect.metric.gain(of_first, value);
                    format!("{text} ({}x)", figures::ratio(gain))
                }
                _ => text,
            }
        });
        (variant.clone(), figures.collect())
    };
    Some(Cells {
        title: matrix.title.clone(),
        columns: matrix.settings.iter().map(heading).collect(),
        rows: matrix.variants.iter().map(row).collect(),
    })
}

/// The table in Markdown; empty where there is none.
pub fn matrix(record: &Record) -> String {
    let Some(cells) = cells(record) else {
        return String::new();
    };
    let mut text = format!(
        "| {} | {} |\n| --- |{}\n",
        cells.title,
        cells.columns.join(" | "),
        " ---: |".repeat(cells.columns.len())
    );
    for (variant, figures) in &cells.rows {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| `{variant}` | {} |", figures.join(" | "));
    }
    let _ = write!(text, "\n{}", provenance(record));
    text
}

fn median(record: &Record, variant: &str, setting: &str) -> Option<f64> {
    let rounds: Vec<&Round> = record
        .rounds_for(Purpose::Matrix)
        .filter(|round| round.setting == setting)
        .collect();
    median_of(record.chapter.effect.metric, &rounds, variant)
}
