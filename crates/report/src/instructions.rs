//! Counted instructions as a table.

use measurement::{figures, record::Record};

use crate::{provenance::provenance, table::Table};

/// The table in Markdown; empty where nothing was counted.
pub fn table(record: &Record) -> String {
    let (Some(counting), Some(first)) = (&record.chapter.instructions, record.instructions.first())
    else {
        return String::new();
    };
    let rows = record.instructions.iter().map(|count| {
        vec![
            format!("`{}`", count.variant),
            figures::ratio(count.per_round),
            figures::percent(count.per_round / first.per_round),
        ]
    });
    let each = format!("instructions a {}", counting.unit);
    let share = format!("of the {}'s", first.variant);
    let table = Table::new(&[""], &[&each, &share], rows.collect());
    format!("{}\n{}", table.markdown(), provenance(record))
}
