//! Counted instructions as a table.

use std::fmt::Write as _;

use measurement::{figures, record::Record};

use crate::provenance::provenance;

/// The table in Markdown; empty where nothing was counted.
pub fn table(record: &Record) -> String {
    let (Some(counting), Some(first)) = (&record.chapter.instructions, record.instructions.first())
    else {
        return String::new();
    };
    let mut text = format!(
        "| | instructions a {} | of the {}'s |\n| --- | ---: | ---: |\n",
        counting.unit, first.variant
    );
    for count in &record.instructions {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "| `{}` | {} | {} |",
            count.variant,
            figures::ratio(count.per_round),
            figures::percent(count.per_round / first.per_round)
        );
    }
    let _ = write!(text, "\n{}", provenance(record));
    text
}
