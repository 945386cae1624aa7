//! The book's pages take code by anchors and figures from captures.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// What a measured figure is followed by.
const UNITS: [&str; 8] = [
    "requests per second",
    "requests/s",
    "rps",
    "ms",
    "µs",
    "times faster",
    "times better",
    "times as",
];

#[test]
fn includes_go_by_anchor_and_no_figure_is_typed() {
    let book = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../src");
    let mut pages = Vec::new();
    find(&book, &mut pages);
    assert!(!pages.is_empty());
    let derived: BTreeSet<&str> = pages.iter().flat_map(|(_, text)| derived(text)).collect();
    let mut broken = Vec::new();
    for (page, text) in &pages {
        let mut in_code = false;
        for (number, line) in (1..).zip(text.lines()) {
            let mut report = |what| broken.push(format!("{}:{number}: {what}", page.display()));
            in_code ^= line.starts_with("```");
            if let Some(wrong) = include_in(line).and_then(|inner| wrong_include(inner, page)) {
                report(wrong);
            }
            for figure in measured(line) {
                if !in_code && !derived.contains(figure) {
                    report(format!(
                        "`{figure}` looks measured: include it from a capture, or show with \
                         `= {figure}` what it follows from"
                    ));
                }
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Pages with their text, but not in the captures, which are a link.
fn find(folder: &Path, pages: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let (kind, path) = (entry.file_type().unwrap(), entry.path());
        if kind.is_dir() {
            find(&path, pages);
        } else if kind.is_file() && path.extension() == Some("md".as_ref()) {
            pages.push((path.clone(), fs::read_to_string(path).unwrap()));
        }
    }
}

/// Figures that the text derives: what follows an equals sign.
fn derived(text: &str) -> impl Iterator<Item = &str> {
    let rests = text.split("= ").skip(1);
    rests.filter_map(|rest| rest.split_whitespace().next().map(figure))
}

/// Figures of three digits or more, or with a fraction, before a unit. Rounder ones are premises: a
/// call of 50 ms, 200 users.
fn measured(line: &str) -> impl Iterator<Item = &str> {
    let spaces = line.match_indices(' ');
    spaces.filter_map(|(at, _)| {
        let figure = figure(line[..at].rsplit(' ').next()?);
        let has_unit = UNITS.iter().any(|unit| {
            let rest = line[at + 1..].strip_prefix(unit);
            rest.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
        });
        (has_unit && is_precise(figure)).then_some(figure)
    })
}

/// A word without what is around its number.
fn figure(word: &str) -> &str {
    let word = word.trim_matches(|c: char| !c.is_ascii_digit());
    let is_number = word.chars().all(|c| c.is_ascii_digit() || ".,".contains(c));
    if is_number { word } else { "" }
}

fn is_precise(figure: &str) -> bool {
    let digits: String = figure.chars().filter(char::is_ascii_digit).collect();
    let digits = digits.trim_start_matches('0');
    let significant = if figure.contains('.') {
        digits
    } else {
        digits.trim_end_matches('0')
    };
    significant.len() >= 3
}

/// What is between `{{#include ` and `}}`.
fn include_in(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("{{#include ")?;
    Some(rest.split_once("}}")?.0.trim())
}

fn wrong_include(inner: &str, page: &Path) -> Option<String> {
    let (file, anchor) = match inner.split_once(':') {
        Some((file, anchor)) => (file, Some(anchor)),
        None => (inner, None),
    };
    let Ok(text) = fs::read_to_string(page.with_file_name(file)) else {
        return Some(format!("`{inner}` is not there"));
    };
    let anchor = anchor?;
    if anchor.chars().all(|c| c.is_ascii_digit() || c == ':') {
        return Some(format!("`{inner}` goes by line: use an anchor"));
    }
    let marked = format!("ANCHOR: {anchor}");
    // `// ANCHOR: read` and `<!-- ANCHOR: first -->`, but not `// ANCHOR: reads`.
    let marks = |line: &str| {
        let rest = line.split_once(&marked).map(|(_, rest)| rest);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    (!text.lines().any(marks)).then(|| format!("`{inner}`: the file has no `{marked}`"))
}

#[test]
fn precise_figures_with_a_unit_look_measured() {
    let found = |line| measured(line).collect::<Vec<_>>();
    assert_eq!(found("It gave 18,532 requests per second."), ["18,532"]);
    assert_eq!(found("a median of 51.3 ms (p99 888 ms)"), ["51.3", "888"]);
    assert!(found("1,000 users, a call of 50 ms, 200 ms, 20,000 rps").is_empty());
    assert!(found("in 1953 Little").is_empty());
    let text = "3,000 / 0.55 s = 5,454 requests per second";
    assert_eq!(derived(text).collect::<Vec<_>>(), ["5,454"]);
}

#[test]
fn an_include_names_an_anchor_that_is_there() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("code.rs"), "// ANCHOR: read\n").unwrap();
    let wrong = |inner: &str| wrong_include(inner, &folder.path().join("page.md"));
    assert_eq!(wrong("code.rs:read"), None);
    assert_eq!(wrong("code.rs"), None);
    for (inner, word) in [
        ("code.rs:1:4", "by line"),
        ("code.rs:7", "by line"),
        ("code.rs:write", "has no `ANCHOR: write`"),
        ("none.rs:read", "is not there"),
    ] {
        let said = wrong(inner).unwrap();
        assert!(said.contains(word), "{said}");
    }
    assert_eq!(include_in("{{#include a.md}}"), Some("a.md"));
}
