//! A capture in Markdown, for the book to include: no measured number is typed by hand.

mod baselines;
mod environment;
mod matrix;
mod rounds;
mod values;

use std::fmt::Write as _;

use analysis::verdict::Analysis;
use measurement::{record::Record, reference::Published};

pub use self::{
    baselines::baselines,
    environment::environment,
    matrix::matrix,
    rounds::rounds,
    values::{anchors, values},
};
pub(crate) use self::{
    environment::environment_rows, matrix::tables as matrix_tables, rounds::rounds_in_full,
};
use crate::{
    provenance::provenance,
    rows::{Row, rows},
};

/// A table for the book and for the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Table {
    /// What stands above each column, and whether figures stand in it.
    pub(crate) heads: Vec<(String, bool)>,
    /// The cells, row by row.
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
    /// Columns of text, then columns of figures: as most tables are.
    pub(crate) fn new(texts: &[&str], figures: &[&str], rows: Vec<Vec<String>>) -> Self {
        let texts = texts.iter().map(|head| ((*head).to_owned(), false));
        let figures = figures.iter().map(|head| ((*head).to_owned(), true));
        Self {
            heads: texts.chain(figures).collect(),
            rows,
        }
    }

    /// As a terminal shows it: columns as wide as their widest cell.
    pub(crate) fn text(&self) -> String {
        let heads = self.heads.iter().map(|(head, _)| head.clone()).collect();
        let rows = || [&heads].into_iter().chain(&self.rows);
        let mut text = String::new();
        for row in rows() {
            let cells = row.iter().enumerate().map(|(column, cell)| {
                let width = rows()
                    .map(|row: &Vec<String>| row[column].chars().count())
                    .max();
                let width = width.unwrap_or(0);
                if self.heads[column].1 {
                    format!("{cell:>width$}")
                } else {
                    format!("{cell:<width$}")
                }
            });
            let line = cells.collect::<Vec<_>>().join("  ");
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{}", line.trim_end());
        }
        text
    }

    /// As the book includes it.
    pub(crate) fn markdown(&self) -> String {
        let mut text = String::new();
        for (head, _) in &self.heads {
            let space = if head.is_empty() { "" } else { " " };
            // Writing to a String cannot fail.
            let _ = write!(text, "|{space}{head} ");
        }
        let rules = self.heads.iter();
        let rules = rules.map(|(_, is_figure)| if *is_figure { "| ---: " } else { "| --- " });
        let _ = writeln!(text, "|\n{}|", rules.collect::<String>());
        for row in &self.rows {
            let _ = writeln!(text, "| {} |", row.join(" | "));
        }
        text
    }
}

/// The chapter's figures: both variants side by side, predictions and verdict.
pub fn table(record: &Record, analysis: &Analysis) -> String {
    let row = |row: Row| {
        vec![
            row.label.to_owned(),
            row.name,
            row.problem,
            row.fix,
            row.remark,
        ]
    };
    let rows = rows(record, analysis).into_iter().map(row).collect();
    let mut table = Table::new(&["", ""], &["problem", &record.variant], rows);
    table.heads.push((String::new(), false));
    let text = format!(
        "{}\nVerdict: **{}**. {}\n\n{}",
        table.markdown(),
        analysis.verdict.kind,
        sentence_case(&analysis.verdict.reason),
        provenance(record)
    );
    text.trim_end().to_owned() + "\n"
}

/// Figures published elsewhere, each with what to know about it.
pub fn published(record: &Record) -> String {
    published_table(record).markdown()
}

pub(crate) fn published_table(record: &Record) -> Table {
    let row = |figure: &Published| {
        let caveat = figure.caveat.clone().unwrap_or_default();
        vec![figure.label.clone(), figure.value.clone(), caveat]
    };
    let rows = record.references.iter().map(row).collect();
    let mut table = Table::new(&["published elsewhere"], &["figure"], rows);
    table.heads.push(("to know".to_owned(), false));
    table
}

/// A reason begins a sentence of its own in the book.
pub(crate) fn sentence_case(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_shows_columns_as_wide_as_their_cells() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let rows = vec![row(["median", "53.7 ms"]), row(["p99", "1 s"])];
        let table = Table::new(&[""], &["base"], rows);
        assert_eq!(
            table.text(),
            "           base\nmedian  53.7 ms\np99         1 s\n"
        );
        assert_eq!(
            table.markdown(),
            "| | base |\n| --- | ---: |\n| median | 53.7 ms |\n| p99 | 1 s |\n"
        );
    }
}
