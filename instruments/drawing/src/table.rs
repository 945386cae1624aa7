//! A table for a terminal, for Markdown and for a page.

use std::fmt::Write as _;

/// Table of text and figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Head of each column, and `true` if the column holds figures.
    pub heads: Vec<(String, bool)>,
    /// The cells, row by row.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// Makes a table with columns of text, then columns of figures.
    pub fn new(texts: &[&str], figures: &[&str], rows: Vec<Vec<String>>) -> Self {
        let texts = texts.iter().map(|head| ((*head).to_owned(), false));
        let figures = figures.iter().map(|head| ((*head).to_owned(), true));
        Self {
            heads: texts.chain(figures).collect(),
            rows,
        }
    }

    /// Formats the table for a terminal, with columns as wide as their widest cell.
    pub fn text(&self) -> String {
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

    /// Formats the table as Markdown.
    pub fn markdown(&self) -> String {
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

/// Returns `text` with a capital letter at its beginning.
pub fn sentence_case(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

/// Returns `text`, cut to at most `most` characters.
pub fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most - 1).collect();
    kept + "…"
}
