//! The chapter's table of variants and scenarios.

use super::provenance;
use crate::analysis::finding::{is_at_least, median_of};
use crate::measurement::{
    chapter_file::{Matrix, Scenario, Secondary},
    record::{Purpose, Record, Round},
};
use crate::report::rows::{known, median_reading, unknown};
use drawing::table::{Column, Table};
use statistics::figures;
use std::fmt::Write as _;

/// Longest description of a scenario, in characters, that fits into a table's head.
const HEAD_AT_MOST: usize = 80;

/// Makes the tables: the effect's metric first, then the secondary metrics. A cell is the median of its
/// rounds. For the effect's metric, it also says how many times better than the first row it is. Empty for a
/// chapter without a table, or if it was not measured.
pub(crate) fn tables(record: &Record) -> Vec<Table> {
    let chapter = &record.chapter;
    let Some(matrix) = &chapter.matrix else {
        return Vec::new();
    };
    if record.rounds_for(Purpose::Matrix).next().is_none() {
        return Vec::new();
    }
    let mut scenarios = Vec::new();
    for name in &matrix.scenarios {
        let words = chapter.scenario(name).map(Scenario::in_words);
        scenarios.push(Column::figures(match words {
            Some(words) if fits(&words) => words,
            _ => name.clone(),
        }));
    }
    let mut figures = vec![(&matrix.title, None)];
    for one in &chapter.secondary {
        figures.push((&one.name, Some(one)));
    }
    let mut tables = Vec::new();
    for (title, secondary) in figures {
        let mut columns = vec![Column::text(title)];
        columns.extend_from_slice(&scenarios);
        let mut rows = Vec::new();
        for variant in &matrix.variants {
            let mut row = vec![variant.clone()];
            for scenario in &matrix.scenarios {
                row.push(match secondary {
                    None => effect_cell(record, matrix, variant, scenario),
                    Some(one) => secondary_cell(record, one, variant, scenario),
                });
            }
            rows.push(row);
        }
        tables.push(Table::new(columns, rows));
    }
    tables
}

fn effect_cell(record: &Record, matrix: &Matrix, variant: &str, scenario: &str) -> String {
    let effect = record.chapter.claims.effect();
    let quantity = &effect.quantity;
    let rounds: Vec<&Round> = rounds_of(record, scenario).collect();
    let Some(own) = median_of(quantity, &rounds, variant) else {
        return unknown();
    };
    let is_over = is_at_least(quantity, &rounds, variant);
    let text = figures::over(is_over).to_owned() + &quantity.text(effect.unit, own);
    let first = &matrix.variants[0];
    if first == variant {
        return text;
    }
    let Some(of_first) = median_of(quantity, &rounds, first) else {
        return text;
    };
    let gain = figures::ratio(quantity.gain(of_first, own));
    // Only latencies can be lower bounds, and a smaller latency is better.
    match (is_at_least(quantity, &rounds, first), is_over) {
        (false, false) => format!("{text} ({gain}x)"),
        (true, false) => format!("{text} (over {gain}x)"),
        (false, true) => format!("{text} (under {gain}x)"),
        (true, true) => text,
    }
}

fn secondary_cell(record: &Record, one: &Secondary, variant: &str, scenario: &str) -> String {
    let rounds = rounds_of(record, scenario).filter(|round| round.variant == variant);
    known(median_reading(rounds, one), |value| one.unit.text(value))
}

fn rounds_of<'a>(record: &'a Record, scenario: &'a str) -> impl Iterator<Item = &'a Round> {
    record
        .rounds_for(Purpose::Matrix)
        .filter(move |round| round.scenario == scenario)
}

/// Formats the tables in Markdown; empty if there are none.
pub fn matrix(record: &Record) -> String {
    let mut tables = tables(record);
    if tables.is_empty() {
        return String::new();
    }
    for row in tables.iter_mut().flat_map(|table| &mut table.rows) {
        row[0] = format!("`{}`", row[0]);
    }
    let tables = tables.iter().map(|table| table.markdown() + "\n");
    let no_interval = "*Each figure is of a few rounds and has no interval: small differences mean nothing here. The gain of \
                       the proof has one.*\n\n";
    tables.collect::<String>() + &columns_in_words(record) + no_interval + &provenance(record)
}

/// Returns whether a description fits into a column's head.
fn fits(words: &str) -> bool {
    words.chars().count() <= HEAD_AT_MOST
}

/// Describes the scenarios whose columns have only their names; empty if there are none.
fn columns_in_words(record: &Record) -> String {
    let mut list = String::new();
    let Some(matrix) = &record.chapter.matrix else {
        return list;
    };
    for name in &matrix.scenarios {
        if let Some(words) = record.chapter.scenario(name).map(Scenario::in_words)
            && !fits(&words)
        {
            let _ = writeln!(list, "- {name}: {words}");
        }
    }
    if !list.is_empty() {
        list.push('\n');
    }
    list
}
