//! The book takes code by anchors and figures from captures.

use std::collections::BTreeSet;
use std::path::Path;

use super::Broken;
use crate::commands::test::repository::Text;

/// What a measured figure is followed by.
const UNITS: [&str; 9] = [
    "requests a second",
    "requests/s",
    "requests per second",
    "rps",
    "ms",
    "µs",
    "times faster",
    "times better",
    "times as",
];

pub(in crate::commands::test) fn broken(texts: &[Text], root: &Path) -> Vec<Broken> {
    let pages: Vec<&Text> = texts
        .iter()
        .filter(|text| text.path.starts_with("src/"))
        .filter(|text| Path::new(&text.path).extension() == Some("md".as_ref()))
        .collect();
    let derived: BTreeSet<&str> = pages.iter().flat_map(|page| derived(&page.text)).collect();
    let mut broken = Vec::new();
    for Text { path, text } in pages {
        let mut in_code = false;
        for (number, line) in (1..).zip(text.lines()) {
            if line.starts_with("```") {
                in_code = !in_code;
            }
            let include = include_in(line).and_then(|inner| wrong_include(inner, path, root));
            broken.extend(include.map(|what| Broken::at(path, number, what)));
            let typed = measured_in(line).filter(|figure| !derived.contains(figure));
            broken.extend(typed.filter(|_| !in_code).map(|figure| {
                let what = format!(
                    "`{figure}` looks measured: include it from a capture, or show with `= \
                     {figure}` what it follows from"
                );
                Broken::at(path, number, what)
            }));
        }
    }
    broken
}

/// Figures that the text derives: what follows an equals sign.
fn derived(text: &str) -> impl Iterator<Item = &str> {
    text.split("= ").skip(1).filter_map(|rest| {
        let figure = figure(rest.split_whitespace().next()?);
        (!figure.is_empty()).then_some(figure)
    })
}

/// Figures of three digits or more, or with a fraction, before a unit. Rounder
/// ones are premises: a call of 50 ms, 200 users.
fn measured_in(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split_inclusive(' ').scan(0, move |at, word| {
        let start = *at;
        *at += word.len();
        Some((start, word))
    });
    words.filter_map(move |(start, word)| {
        let figure = figure(word.trim());
        let rest = line.get(start + word.len()..)?;
        let has_unit = UNITS.iter().any(|unit| {
            rest.strip_prefix(unit)
                .is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
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

fn wrong_include(inner: &str, page: &str, root: &Path) -> Option<String> {
    let (file, anchor) = inner
        .split_once(':')
        .map_or((inner, None), |(file, anchor)| (file, Some(anchor)));
    let folder = root.join(page);
    let file = folder.parent()?.join(file);
    let Ok(text) = std::fs::read_to_string(&file) else {
        return Some(format!("includes `{inner}`, which is not there"));
    };
    let anchor = anchor?;
    if anchor.is_empty() || anchor.contains(|c: char| c.is_ascii_digit() || c == ':') {
        let is_line = anchor
            .split(':')
            .all(|part| part.chars().all(|c| c.is_ascii_digit()));
        if is_line {
            return Some(format!("includes `{inner}` by line: use an anchor"));
        }
    }
    let marked = format!("ANCHOR: {anchor}");
    // `// ANCHOR: read` and `<!-- ANCHOR: first -->`, but not `// ANCHOR: reads`.
    let there = text.lines().any(|line| {
        let rest = line.split_once(&marked).map(|(_, rest)| rest);
        rest.is_some_and(|rest| {
            !rest.starts_with(|c: char| c.is_alphanumeric() || "_-".contains(c))
        })
    });
    (!there).then(|| format!("includes `{inner}`, but the file has no `{marked}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(line: &str) -> Vec<&str> {
        measured_in(line).collect()
    }

    #[test]
    fn precise_figures_with_a_unit_look_measured() {
        assert_eq!(measured("It gave 18,532 requests a second."), ["18,532"]);
        assert_eq!(
            measured("a median of 51.3 ms (p99 888 ms)"),
            ["51.3", "888"]
        );
        assert!(measured("1,000 users, a call of 50 ms, 200 ms, 20,000 rps").is_empty());
        assert!(measured("in 1953 Little").is_empty());
    }

    #[test]
    fn what_is_derived_may_be_said() {
        let found: Vec<_> = derived("3,000 / 0.55 s = 5,454 requests a second").collect();
        assert_eq!(found, ["5,454"]);
    }

    #[test]
    fn includes_go_by_anchor() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("src")).unwrap();
        std::fs::write(root.path().join("code.rs"), "// ANCHOR: read\n").unwrap();
        let wrong = |inner: &str| wrong_include(inner, "src/page.md", root.path());
        assert_eq!(wrong("../code.rs:read"), None);
        assert_eq!(wrong("../code.rs"), None);
        for (inner, word) in [
            ("../code.rs:1:4", "by line"),
            ("../code.rs:7", "by line"),
            ("../code.rs:write", "has no `ANCHOR: write`"),
            ("../none.rs:read", "is not there"),
        ] {
            let said = wrong(inner).unwrap();
            assert!(said.contains(word), "{said}");
        }
        assert_eq!(include_in("{{#include a.md}}"), Some("a.md"));
    }
}
