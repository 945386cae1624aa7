//! A table for a terminal, for Markdown and for a page.

use std::fmt::Write as _;

/// Column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its head; may be empty.
    pub head: String,
    /// `true` if its cells are figures, which stand at the right.
    pub has_figures: bool,
}

impl Column {
    /// Makes a column of text.
    pub fn text(head: impl Into<String>) -> Self {
        Self {
            head: head.into(),
            has_figures: false,
        }
    }

    /// Makes a column of figures.
    pub fn figures(head: impl Into<String>) -> Self {
        Self {
            head: head.into(),
            has_figures: true,
        }
    }
}

/// List of rows, for a terminal, for Markdown and, by [`crate::html::scrolled`], for a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// The columns, from left to right.
    pub columns: Vec<Column>,
    /// The cells, row by row.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// Makes a table. Each row has a cell for each column.
    pub fn new(columns: impl IntoIterator<Item = Column>, rows: Vec<Vec<String>>) -> Self {
        Self {
            columns: columns.into_iter().collect(),
            rows,
        }
    }

    /// Formats the table for a terminal, with columns as wide as their widest cell.
    pub fn text(&self) -> String {
        let mut lines = vec![Vec::new()];
        for column in &self.columns {
            lines[0].push(column.head.as_str());
        }
        for row in &self.rows {
            lines.push(row.iter().map(String::as_str).collect());
        }
        let mut widths = vec![0; self.columns.len()];
        for line in &lines {
            for (width, cell) in widths.iter_mut().zip(line) {
                *width = cell.chars().count().max(*width);
            }
        }
        let mut text = String::new();
        for line in lines {
            let mut cells = Vec::new();
            for (place, cell) in line.into_iter().enumerate() {
                let width = widths[place];
                cells.push(if self.columns[place].has_figures {
                    format!("{cell:>width$}")
                } else {
                    format!("{cell:<width$}")
                });
            }
            text += cells.join("  ").trim_end();
            text.push('\n');
        }
        text
    }

    /// Formats the table as Markdown.
    pub fn markdown(&self) -> String {
        let (mut heads, mut rules) = (String::new(), String::new());
        for Column { head, has_figures } in &self.columns {
            let space = if head.is_empty() { "" } else { " " };
            // Writing to a String cannot fail.
            let _ = write!(heads, "|{space}{head} ");
            rules += if *has_figures { "| ---: " } else { "| --- " };
        }
        let mut text = format!("{heads}|\n{rules}|\n");
        for row in &self.rows {
            let _ = writeln!(text, "| {} |", row.join(" | "));
        }
        text
    }
}

/// Returns `text` with a capital letter at its beginning.
pub fn sentence_case(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}

/// Returns `text`, cut to at most `most` characters.
pub fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most - 1).collect();
    kept + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_shows_columns_as_wide_as_their_cells() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let rows = vec![row(["median", "53.7 ms"]), row(["p99", "1 s"])];
        let table = Table::new([Column::text(""), Column::figures("base")], rows);
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
