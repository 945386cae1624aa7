//! Rows of the data file.

/// Text of the data file.
const TEXT: &str = include_str!("ecosystem.md");

/// Cells of a row, without the backticks around names.
pub(crate) type Row = Vec<&'static str>;

/// Returns the rows of the table under `heading` whose first cell is a name.
///
/// # Panics
///
/// Panics if there is no such heading, which a test of this crate would find.
pub(crate) fn rows(heading: &str) -> Vec<Row> {
    let mut is_here = false;
    let mut was_found = false;
    let mut rows = Vec::new();
    for line in TEXT.lines() {
        if let Some(other) = line.strip_prefix("## ") {
            is_here = other == heading;
            was_found |= is_here;
        } else if is_here && line.starts_with("| `") {
            rows.push(line.trim_matches('|').split('|').map(str::trim).collect());
        }
    }
    assert!(was_found, "no table {heading}");
    rows
}

/// Returns the cell without the backticks around its name.
pub(crate) fn name(cell: &'static str) -> &'static str {
    cell.trim_matches('`')
}
