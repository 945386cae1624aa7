//! Where the figures come from, in a line.

use measurement::record::Record;

/// Where the figures come from, in one line below each table.
pub(crate) fn provenance(record: &Record) -> String {
    let version = tools_in_words(record).map_or_else(String::new, |tools| format!("; {tools}"));
    format!(
        "*Measured by `{}` at commit `{}` on {} (UTC): {}{version}.*\n",
        record.command,
        record.commit.in_short(),
        record.started.get(..10).unwrap_or(&record.started),
        record.environment.in_a_line(),
    )
}

fn tools_in_words(record: &Record) -> Option<String> {
    let tools = &record.environment.tools;
    let each: Vec<_> = tools
        .iter()
        .map(|(tool, version)| format!("{tool} {version}"))
        .collect();
    (!each.is_empty()).then(|| each.join(", "))
}
