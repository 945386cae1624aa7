//! A capture in Markdown, for the book to include: no measured number is typed by hand.

mod matrix;
mod rounds;
mod values;

use crate::analysis::verdict::Analysis;
use crate::measurement::record::Record;

pub use self::{
    matrix::matrix,
    values::{anchors, values},
};
pub(crate) use self::{matrix::tables as matrix_tables, rounds::rounds};
use crate::report::rows::rows;
use drawing::table::{Column, Table, sentence_case};
use statistics::figures;

/// Formats the chapter's figures: both variants side by side, predictions and verdict.
pub fn table(record: &Record, analysis: &Analysis) -> String {
    let mut cells = Vec::new();
    for row in rows(record, analysis) {
        cells.push(vec![
            row.label.to_owned(),
            row.name,
            row.problem,
            row.fix,
            row.remark,
        ]);
    }
    let columns = [
        Column::text(""),
        Column::text(""),
        Column::figures("problem"),
        Column::figures(&record.variant),
        Column::text(""),
    ];
    let table = Table::new(columns, cells);
    let text = format!(
        "{}\nVerdict: **{}**. {}\n\n{}",
        table.markdown(),
        analysis.verdict.kind,
        sentence_case(&analysis.verdict.reason),
        provenance(record)
    );
    text.trim_end().to_owned() + "\n"
}

/// Formats the provenance of figures in one line, for below each table.
fn provenance(record: &Record) -> String {
    let tools = record.environment.tools.iter();
    let tools: Vec<String> = tools.map(|(tool, of)| format!("{tool} {of}")).collect();
    let semicolon = if tools.is_empty() { "" } else { "; " };
    format!(
        "*Measured by `{}` on {} (UTC) {}: {}{semicolon}{}.*\n",
        record.command,
        record.started.get(..10).unwrap_or(&record.started),
        record.inputs,
        record.environment.in_a_line(),
        tools.join(", "),
    )
}

/// Returns the machine and the tools, name by name.
pub(crate) fn environment_rows(record: &Record) -> Vec<(&str, String)> {
    let here = &record.environment;
    let optimised = if here.optimised {
        "optimised"
    } else {
        "not optimised"
    };
    let cpus = format!("{} usable of {} online", here.cpus_usable, here.cpus_online);
    let quota = match here.quota {
        Some(quota) => format!("{quota} CPUs"),
        None => "none".to_owned(),
    };
    let governor = here.governor.as_deref().unwrap_or("not known");
    let mut rows = vec![
        ("cpu", here.cpu_model.clone()),
        ("cpus", cpus),
        (
            "memory",
            format!("{} MiB", figures::count(here.memory_mib as f64)),
        ),
        ("NUMA nodes", here.numa_nodes.to_string()),
        ("system", here.system.clone()),
        ("kernel", here.kernel.clone()),
        ("CPU quota", quota),
        ("frequency governor", governor.to_owned()),
        ("build", format!("{} ({optimised})", here.build_profile)),
    ];
    if let Some(placement) = &here.placement {
        rows.push(("placement", placement.clone()));
    }
    for (tool, version) in &here.tools {
        rows.push((tool, version.clone()));
    }
    rows.push(("code", record.inputs.to_string()));
    rows.push(("date", format!("{} (UTC)", record.started)));
    rows
}

/// Formats figures published elsewhere, each with its caveat.
pub fn published(record: &Record) -> String {
    published_table(record).markdown()
}

pub(crate) fn published_table(record: &Record) -> Table {
    let mut rows = Vec::new();
    for figure in &record.references {
        let caveat = figure.caveat.clone().unwrap_or_default();
        rows.push(vec![figure.label.clone(), figure.value.clone(), caveat]);
    }
    let columns = [
        Column::text("published elsewhere"),
        Column::figures("figure"),
        Column::text("to know"),
    ];
    Table::new(columns, rows)
}
