//! A record of regions as a table, and as single figures for sentences.

use std::fmt::Write as _;

use crate::table::anchors;
use analysis::regions::judge;
use measurement::claim::{PROBLEM, SOLUTION};
use measurement::figures;
use measurement::regions::{LOCAL_AT_LEAST, Record, Seen};

/// The table, as Markdown.
pub fn table(record: &Record) -> String {
    let mut text = String::from("|");
    let names = record.variants.iter().map(|seen| seen.variant.as_str());
    for head in [""].into_iter().chain(names).chain(["claimed"]) {
        // Writing to a String cannot fail.
        let _ = write!(text, " {head} |");
    }
    let figures_in = " ---: |".repeat(record.variants.len());
    let _ = writeln!(text, "\n| --- |{figures_in} --- |");
    let mut line = |what: &str, claimed: &str, of: &dyn Fn(&Seen) -> String| {
        let _ = write!(text, "| {what} |");
        for seen in &record.variants {
            // A figure stays beside its unit.
            let _ = write!(text, " {} |", of(seen).replace(' ', "\u{a0}"));
        }
        let _ = writeln!(text, " {claimed} |");
    };
    let (cpus, regions) = (record.cpus, record.regions);
    let (before, after) = (
        figures::share(record.problem_at_most()),
        figures::share(LOCAL_AT_LEAST),
    );
    let optional = |value: Option<f64>| value.map_or("unknown".to_owned(), figures::share);
    line(
        "loads answered by the reader's own region",
        &format!("at most {before}, then at least {after}"),
        &|seen| optional(seen.local_loads()),
    );
    line(
        "pages in the reader's own region",
        &format!("then at least {after}"),
        &|seen| optional(seen.local_pages()),
    );
    line(
        "workers that stay on a CPU of their own",
        &format!("then {cpus} of {cpus}"),
        &|seen| format!("{} of {}", seen.pinned_readers(), seen.readers()),
    );
    line(
        "regions with a copy of their own",
        &format!("then {regions} of {regions}"),
        &|seen| format!("{} of {regions}", seen.regions_with_a_copy()),
    );
    line(
        "copies in memory",
        &format!("1, then {} = regions + 1", regions + 1),
        &|seen| seen.copies().to_string(),
    );
    line("memory of the service", "", &|seen| {
        format!("{} MiB", figures::count((seen.resident_kib / 1024) as f64))
    });
    let tools: Vec<String> = record
        .tools
        .iter()
        .map(|(name, version)| format!("{name} {version}"))
        .collect();
    let _ = writeln!(
        text,
        "\n{} CPUs in {} NUMA nodes, emulated; {} texts; {} requests of each variant; {}; \
         recorded {} at commit `{}` by `{}`.",
        record.cpus,
        record.regions,
        figures::count(record.load.texts.into()),
        figures::count(record.variants.first().map_or(0, |seen| seen.answers) as f64),
        tools.join(", "),
        record.started.get(..10).unwrap_or(&record.started),
        record.commit.in_short(),
        record.command
    );
    text
}

/// Single figures, each between two anchors.
pub fn values(record: &Record) -> String {
    let fixed: Vec<&str> = [SOLUTION]
        .into_iter()
        .filter(|name| record.seen(name).is_some())
        .collect();
    let verdict = judge(record, &fixed);
    let mut named = vec![
        ("verdict".to_owned(), verdict.kind.to_string()),
        ("reason".to_owned(), verdict.reason),
        ("cpus".to_owned(), record.cpus.to_string()),
        ("regions".to_owned(), record.regions.to_string()),
    ];
    for name in [PROBLEM, SOLUTION] {
        let Some(seen) = record.seen(name) else {
            continue;
        };
        let mut add = |what: &str, value: String| named.push((format!("{name}-{what}"), value));
        add(
            "local-loads",
            figures::share(seen.local_loads().unwrap_or(f64::NAN)),
        );
        add(
            "local-pages",
            figures::share(seen.local_pages().unwrap_or(f64::NAN)),
        );
        add("pinned", seen.pinned_readers().to_string());
        add("copies", seen.copies().to_string());
        add("memory", format!("{} MiB", seen.resident_kib / 1024));
    }
    anchors("<!-- Generated: include single anchors. -->", named)
}
