//! The book's pages take code by anchors and figures from captures.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use course::measurement::chapter_file::ChapterFile;

use crate::{chapters, root};

/// Units that follow a measured figure.
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
    let pages = all();
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

/// A reader who has seen the answer predicts nothing.
#[test]
fn no_page_gives_away_what_a_later_chapter_asks() {
    let book = root().join("src");
    let summary = fs::read_to_string(book.join("SUMMARY.md")).unwrap();
    let pages = summary.split("](").skip(1);
    let order: Vec<&str> = pages
        .filter_map(|rest| Some(rest.split_once(')')?.0))
        .collect();
    for (number, folder) in chapters() {
        let file = fs::read_to_string(folder.join("chapter.toml")).unwrap();
        let file = ChapterFile::parse(&file, "chapter.toml", 2).unwrap();
        let first = format!("chapter{number}/predict.md");
        let before = order.iter().position(|page| *page == first);
        let before = before.unwrap_or_else(|| panic!("{first} is not listed"));
        for page in &order[..before] {
            let text = fs::read_to_string(book.join(page)).unwrap();
            for answer in &file.answers {
                assert!(
                    !text.contains(answer),
                    "{page} says `{answer}`, which chapter {number} asks"
                );
            }
        }
    }
}

/// Before a block of the README that is a recorded file.
const RECORDED: &str = "<!-- recorded: ";

/// GitHub shows no includes. `UPDATE_EXPECT=1 cargo test -p workshop --test repository readme` copies the files.
#[test]
fn the_readme_shows_what_was_recorded() {
    let readme = root().join("README.md");
    let text = fs::read_to_string(&readme).unwrap();
    let mut parts = text.split(RECORDED);
    let mut right = parts.next().unwrap().to_owned();
    let mut blocks = 0;
    for part in parts {
        let (file, rest) = part.split_once(" -->\n\n```text\n").unwrap();
        let end = rest.find("```\n").unwrap();
        let recorded = fs::read_to_string(root().join(file)).unwrap();
        let _ = write!(
            right,
            "{RECORDED}{file} -->\n\n```text\n{recorded}{}",
            &rest[end..]
        );
        blocks += 1;
    }
    assert!(blocks > 0);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(readme, right).unwrap();
    } else {
        assert_eq!(text, right);
    }
}

/// Checks that a reader of the chapters cannot recognize a capture by its names.
#[test]
fn the_gallerys_names_appear_in_no_chapter() {
    let folder = root().join("flamegraphs/gallery");
    let pages = all();
    for number in 1..=12 {
        let list = fs::read_to_string(folder.join(format!("{number:02}.md"))).unwrap();
        for frame in list.split('`').skip(1).step_by(2) {
            let name = frame.split(", line ").next().unwrap_or(frame);
            let is_route = ["GET /", "POST /", "PUT /"]
                .iter()
                .any(|start| name.starts_with(start));
            if !is_route && !name.starts_with("app::") {
                continue;
            }
            for (page, text) in &pages {
                let within = page.strip_prefix(root().join("src")).unwrap();
                if within.to_string_lossy().starts_with("chapter") {
                    let is_there = text.contains(&format!("`{name}`"));
                    assert!(
                        !is_there,
                        "capture {number}: `{name}` is in {}",
                        page.display()
                    );
                }
            }
        }
    }
}

/// The pages of the book with their text, in the order of their names.
pub(crate) fn all() -> Vec<(PathBuf, String)> {
    let mut pages = Vec::new();
    find(&root().join("src"), &mut pages);
    assert!(!pages.is_empty());
    pages.sort_unstable();
    pages
}

/// Collects the pages of a folder. It follows no links, so it leaves out the captures.
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

/// Returns the text between `{{#include ` and `}}`.
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
