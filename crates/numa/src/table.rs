//! A record as a table, and as single figures for sentences.

use std::fmt::Write as _;

use course::measurement::claim::{PROBLEM, SOLUTION};
use course::report::table::anchors;
use drawing::table::{Column, Table};
use statistics::figures;

use crate::record::{LOCAL_AT_LEAST, Record, Variant};
use crate::verdict::judge;

/// A row of the table: its name, its claim, and the function that gives a variant's cell.
type Row<'a> = (&'a str, String, &'a dyn Fn(&Variant) -> String);

/// The table, as Markdown.
pub fn table(record: &Record) -> String {
    let (cpus, nodes, after) = (record.cpus, record.nodes, figures::share(LOCAL_AT_LEAST));
    let before = figures::share(record.problem_at_most());
    let rows: [Row<'_>; 6] = [
        (
            "loads answered by the reader's own region",
            format!("at most {before}, then at least {after}"),
            &|variant| share(variant.local_loads()),
        ),
        (
            "pages in the reader's own region",
            format!("then at least {after}"),
            &|variant| share(variant.local_pages()),
        ),
        (
            "workers that stay on a CPU of their own",
            format!("then {cpus} of {cpus}"),
            &|variant| format!("{} of {}", variant.pinned_readers(), variant.readers()),
        ),
        (
            "regions with a copy of their own",
            format!("then {nodes} of {nodes}"),
            &|variant| format!("{} of {nodes}", variant.nodes_with_a_copy()),
        ),
        (
            "copies in memory",
            format!("1, then {} = regions + 1", nodes + 1),
            &|variant| variant.placement.copies.len().to_string(),
        ),
        ("memory of the service", String::new(), &|variant| {
            format!(
                "{} MiB",
                figures::count((variant.resident_kib / 1024) as f64)
            )
        }),
    ];
    let mut columns = vec![Column::text("")];
    for variant in &record.variants {
        columns.push(Column::figures(&variant.name));
    }
    columns.push(Column::text("claimed"));
    let mut cells = Vec::new();
    for (what, claimed, of) in rows {
        let mut row = vec![what.to_owned()];
        for variant in &record.variants {
            // A figure stays beside its unit.
            row.push(of(variant).replace(' ', "\u{a0}"));
        }
        row.push(claimed);
        cells.push(row);
    }
    let mut text = Table::new(columns, cells).markdown();
    let answers = match record.variants.first() {
        Some(variant) => variant.answers,
        None => 0,
    };
    let mut tools = Vec::new();
    for (name, version) in &record.tools {
        tools.push(format!("{name} {version}"));
    }
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "\n{cpus} CPUs in {nodes} NUMA nodes, emulated; {} texts; {} requests of each variant; {}; \
         recorded {} {} by `{}`.",
        figures::count(record.load.texts.into()),
        figures::count(answers as f64),
        tools.join(", "),
        record.started.get(..10).unwrap_or(&record.started),
        record.inputs,
        record.command
    );
    text
}

/// Single figures, each between two anchors.
pub fn values(record: &Record) -> String {
    let fix = match record.variants.last() {
        Some(last) => &last.name,
        None => SOLUTION,
    };
    let verdict = judge(record, fix);
    let mut named = vec![
        ("verdict".to_owned(), verdict.kind.to_string()),
        ("reason".to_owned(), verdict.reason),
        ("cpus".to_owned(), record.cpus.to_string()),
        ("regions".to_owned(), record.nodes.to_string()),
    ];
    for name in [PROBLEM, SOLUTION] {
        let Some(variant) = record.variant(name) else {
            continue;
        };
        let values = [
            ("local-loads", share(variant.local_loads())),
            ("local-pages", share(variant.local_pages())),
            ("pinned", variant.pinned_readers().to_string()),
            ("copies", variant.placement.copies.len().to_string()),
            ("memory", format!("{} MiB", variant.resident_kib / 1024)),
        ];
        for (what, value) in values {
            named.push((format!("{name}-{what}"), value));
        }
    }
    anchors("<!-- Generated: include single anchors. -->", named)
}

/// Formats a share, or says that it is unknown.
fn share(local: Option<f64>) -> String {
    figures::share(local.unwrap_or(f64::NAN))
}
