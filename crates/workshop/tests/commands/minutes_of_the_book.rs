//! Pages say how long they take, and whatever adds those minutes up is right. The introduction's table
//! has every part once, with the sum of all below it.
//!
//! A sum is `<span class="sum" data-pages="chapter1/">45</span>`: the minutes of all pages whose paths
//! begin so, or with one of several words. `main` is every part of the book but `Reference`, and `all`
//! is every page. With `data-in="hours"` it is hours, such as `8.5`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The part that nobody reads from its beginning to its end.
const REFERENCE: &str = "Reference";

#[test]
fn sums_of_minutes_are_right_and_the_introduction_has_every_part() {
    let book = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../src");
    let wrong = Minutes::of(&book).wrong();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A page in the summary's order.
struct Page {
    path: String,
    /// The heading in the summary that it stands under; empty before the first.
    part: String,
    text: String,
    minutes: Option<u32>,
}

struct Minutes(Vec<Page>);

/// `data-pages`, what the span says, its line, and whether that is a row of a table.
struct Sum<'a> {
    pages: &'a str,
    is_hours: bool,
    says: &'a str,
    line: usize,
    is_row: bool,
}

impl Minutes {
    fn of(book: &Path) -> Self {
        let summary = fs::read_to_string(book.join("SUMMARY.md")).unwrap();
        let mut part = String::new();
        let mut pages = Vec::new();
        for line in summary.lines() {
            if let Some(heading) = line.strip_prefix("# ") {
                heading.clone_into(&mut part);
            }
            let link = line
                .split_once("](")
                .and_then(|(_, rest)| rest.split_once(')'));
            let Some((path, _)) = link.filter(|(path, _)| !path.is_empty()) else {
                continue;
            };
            let file = book.join(path);
            let text = fs::read_to_string(&file).unwrap();
            pages.push(Page {
                path: path.to_owned(),
                // The title of all is no part.
                part: if part == "Summary" {
                    String::new()
                } else {
                    part.clone()
                },
                minutes: minutes(&text).or_else(|| minutes(&included(&file, &text)?)),
                text,
            });
        }
        Self(pages)
    }

    fn wrong(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for page in &self.0 {
            if page.minutes.is_none() {
                wrong.push(format!("{}: no minutes at its top", page.path));
            }
            for sum in sums(&page.text) {
                let real: u32 = self.meant(sum.pages).filter_map(|page| page.minutes).sum();
                let real = if sum.is_hours {
                    format!("{:.1}", f64::from(real) / 60.0)
                } else {
                    real.to_string()
                };
                if real != sum.says {
                    wrong.push(format!(
                        "{}:{}: `{}` takes {real}, not {}",
                        page.path, sum.line, sum.pages, sum.says
                    ));
                }
            }
        }
        if let Some(first) = self.0.first() {
            wrong.extend(self.wrong_in_table(first));
        }
        wrong
    }

    /// The pages that a sum is over.
    fn meant(&self, pages: &str) -> impl Iterator<Item = &Page> {
        let prefixes: Vec<String> = pages.split(' ').map(str::to_owned).collect();
        self.0.iter().filter(move |page| match &*prefixes[0] {
            "all" => true,
            "main" => page.is_main(),
            _ => prefixes
                .iter()
                .any(|prefix| page.path.starts_with(&**prefix)),
        })
    }

    /// What the introduction's table leaves out, or has twice.
    fn wrong_in_table(&self, introduction: &Page) -> Vec<String> {
        let rows: Vec<Sum<'_>> = sums(&introduction.text).filter(|sum| sum.is_row).collect();
        let mut wrong = Vec::new();
        if !rows.iter().any(|row| row.pages == "main") {
            wrong.push(format!(
                "{}: its table lacks the sum of the main path, `data-pages=\"main\"`",
                introduction.path
            ));
        }
        let mut counted: BTreeMap<&str, usize> = BTreeMap::new();
        for row in rows
            .iter()
            .filter(|row| !["main", "all"].contains(&row.pages))
        {
            for page in self.meant(row.pages) {
                *counted.entry(&page.path).or_default() += 1;
            }
        }
        for page in self.0.iter().filter(|page| page.is_main()) {
            let times = counted.get(&*page.path).copied().unwrap_or(0);
            if times != 1 {
                wrong.push(format!(
                    "{}: its table counts {} {times} times, of the part \"{}\"",
                    introduction.path, page.path, page.part
                ));
            }
        }
        wrong
    }
}

impl Page {
    fn is_main(&self) -> bool {
        !self.part.is_empty() && self.part != REFERENCE
    }
}

/// The first number of `<p class="minutes">`.
fn minutes(text: &str) -> Option<u32> {
    let (_, rest) = text.split_once("<p class=\"minutes\">")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// Of a page that is another file.
fn included(page: &Path, text: &str) -> Option<String> {
    let (_, rest) = text.split_once("{{#include ")?;
    let file: PathBuf = page.with_file_name(rest.split_once("}}")?.0);
    fs::read_to_string(file).ok()
}

fn sums(text: &str) -> impl Iterator<Item = Sum<'_>> {
    (1..).zip(text.lines()).flat_map(|(line, content)| {
        let spans = content.split("<span class=\"sum\" ").skip(1);
        spans.filter_map(move |span| {
            let (attributes, rest) = span.split_once('>')?;
            let (_, pages) = attributes.split_once("data-pages=\"")?;
            Some(Sum {
                pages: pages.split_once('"')?.0,
                is_hours: attributes.contains("data-in=\"hours\""),
                says: rest.split_once('<')?.0,
                line,
                is_row: content.starts_with('|'),
            })
        })
    })
}

#[test]
fn a_part_that_the_table_leaves_out_and_a_wrong_sum_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &str| {
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let page = |minutes| format!("# A\n\n<p class=\"minutes\">{minutes} minutes</p>\n");
    write(
        "SUMMARY.md",
        "# Summary\n\n[Introduction](introduction.md)\n\n# Chapter 1\n\n- [A](one/a.md)\n  - [B](one/b.md)\n\
         # Chapter 2\n- [C](two/c.md)\n# Reference\n- [D](d.md)\n",
    );
    for (file, minutes) in [
        ("one/a.md", 70),
        ("one/b.md", 5),
        ("two/c.md", 15),
        ("d.md", 9),
    ] {
        write(file, &page(minutes));
    }
    let sum =
        |pages, says| format!("| x | <span class=\"sum\" data-pages=\"{pages}\">{says}</span> |\n");
    let hours =
        "About <span class=\"sum\" data-pages=\"main\" data-in=\"hours\">1.5</span> hours.\n";
    let wrong = |rows: &str| {
        write("introduction.md", &format!("{}{rows}\n{hours}", page(2)));
        Minutes::of(folder.path()).wrong()
    };
    let right = sum("one/", 75) + &sum("two/", 15) + &sum("main", 90) + &sum("all", 101);
    assert_eq!(wrong(&right), Vec::<String>::new());
    assert_eq!(
        wrong(&(sum("one/ two/", 90) + &sum("main", 90))),
        Vec::<String>::new()
    );
    let said = wrong(&(sum("one/", 74) + &sum("main", 90)));
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].contains("`one/` takes 75, not 74"), "{said:?}");
    assert!(said[1].contains("two/c.md 0 times"), "{said:?}");
    let said = wrong(&(sum("one/", 75) + &sum("two/", 15)));
    assert!(said[0].contains("lacks the sum"), "{said:?}");
}
