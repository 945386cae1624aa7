//! A record of regions as a table, and as single figures for sentences.

use std::fmt::Write as _;

use analysis::regions::judge;
use measurement::claim::{PROBLEM, SOLUTION};
use measurement::figures;
use measurement::regions::{LOCAL_AT_LEAST, Record, Seen};

/// One line of the table: what is counted, what is claimed, and how it is read off a variant.
struct Line {
    what: &'static str,
    claimed: String,
    of: Box<dyn Fn(&Seen) -> String>,
}

fn lines(record: &Record) -> Vec<Line> {
    let cpus = record.cpus as usize;
    let regions = record.regions as usize;
    let optional = |value: Option<f64>| value.map_or("unknown".to_owned(), figures::share);
    let line = |what, claimed, of: Box<dyn Fn(&Seen) -> String>| Line { what, claimed, of };
    vec![
        line(
            "loads answered by the reader's own region",
            format!(
                "at most {}, then at least {}",
                figures::share(record.problem_at_most()),
                figures::share(LOCAL_AT_LEAST)
            ),
            Box::new(move |seen| optional(seen.local_loads())),
        ),
        line(
            "pages in the reader's own region",
            format!("then at least {}", figures::share(LOCAL_AT_LEAST)),
            Box::new(move |seen| optional(seen.local_pages())),
        ),
        line(
            "workers that stay on a CPU of their own",
            format!("then {cpus} of {cpus}"),
            Box::new(move |seen| format!("{} of {}", seen.pinned_readers(), seen.readers())),
        ),
        line(
            "regions with a copy of their own",
            format!("then {regions} of {regions}"),
            Box::new(move |seen| format!("{} of {regions}", seen.regions_with_a_copy())),
        ),
        line(
            "copies in memory",
            format!("1, then {} = regions + 1", regions + 1),
            Box::new(|seen| seen.copies().to_string()),
        ),
        line(
            "memory of the service",
            String::new(),
            Box::new(|seen| format!("{} MiB", figures::count((seen.resident_kib / 1024) as f64))),
        ),
    ]
}

/// The table, as Markdown.
pub fn table(record: &Record) -> String {
    let mut text = String::from("|");
    let names = record.variants.iter().map(|seen| seen.variant.as_str());
    let heads: Vec<&str> = [""].into_iter().chain(names).chain(["claimed"]).collect();
    for head in &heads {
        // Writing to a String cannot fail.
        let _ = write!(text, " {head} |");
    }
    let figures_in = " ---: |".repeat(record.variants.len());
    let _ = writeln!(text, "\n| --- |{figures_in} --- |");
    for line in lines(record) {
        let _ = write!(text, "| {} |", line.what);
        for seen in &record.variants {
            // A figure stays beside its unit.
            let figure = (line.of)(seen).replace(' ', "\u{a0}");
            let _ = write!(text, " {figure} |");
        }
        let _ = writeln!(text, " {} |", line.claimed);
    }
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
    let mut text = String::from("<!-- Generated: include single anchors. -->\n");
    for (name, value) in named {
        let _ = writeln!(
            text,
            "<!-- ANCHOR: {name} -->\n{value}\n<!-- ANCHOR_END: {name} -->"
        );
    }
    text
}
