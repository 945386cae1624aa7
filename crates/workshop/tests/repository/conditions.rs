//! Sentences of the book that compare figures: `<!-- holds: chapter4.in_tls < chapter4.effect -->` follows a
//! sentence, in its paragraph, where no reader sees it. A new record that makes the sentence wrong fails here.

use std::cell::RefCell;
use std::fs;
use std::sync::Arc;

use minijinja::value::ValueKind;
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, Value};
use pulldown_cmark::{Event, Options, Parser, Tag};
use statistics::figures::number;

use crate::figures::Figures;
use crate::{pages, root};

#[test]
fn sentences_say_what_the_records_say() {
    let conditions = Conditions::new(Figures::read(&root().join("flamegraphs")));
    let others = ["README.md", "METHODOLOGY.md"].map(|name| root().join(name));
    let others = others.map(|page| (fs::read_to_string(&page).unwrap(), page));
    let pages = pages::all().into_iter().map(|(page, text)| (text, page));
    let mut wrong = Vec::new();
    for (text, page) in pages.chain(others) {
        let found = comments(&text);
        let meant = text.matches("<!-- holds:").count();
        if found.len() != meant {
            wrong.push(format!(
                "{}: {meant} conditions, of which {} stand after a sentence of their own",
                page.display(),
                found.len()
            ));
        }
        for (line, sentence, comment) in found {
            if let Err(why) = conditions.check(&comment, &sentence) {
                wrong.push(format!(
                    "{}:{line}: `{comment}` {why}: {sentence}",
                    page.display()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The comments on a page that are meant as conditions: line, the sentence before, and the comment's text.
fn comments(page: &str) -> Vec<(usize, String, String)> {
    let mut found = Vec::new();
    let mut begin = 0;
    for (event, range) in Parser::new_ext(page, Options::ENABLE_TABLES).into_offset_iter() {
        match event {
            Event::Start(
                Tag::Paragraph | Tag::Heading { .. } | Tag::Item | Tag::TableRow | Tag::HtmlBlock,
            ) => {
                begin = range.start;
            }
            Event::Html(_) | Event::InlineHtml(_) => {
                let parts = page[range.clone()].split_once("<!--");
                let Some((tags, comment)) =
                    parts.filter(|(_, comment)| comment.trim().starts_with("hold"))
                else {
                    continue;
                };
                let at = range.start + tags.len();
                let before = page[begin..at]
                    .trim_end()
                    .rsplit(". ")
                    .find(|sentence| !sentence.trim().is_empty());
                let [sentence, comment] = [
                    before.unwrap_or_default(),
                    comment.split("-->").next().unwrap_or_default(),
                ]
                .map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
                found.push((page[..at].matches('\n').count() + 1, sentence, comment));
                begin = range.end;
            }
            _ => {}
        }
    }
    found
}

thread_local! {
    /// Values that the functions of the current condition returned, each as `NAME = VALUE`.
    static GIVEN: RefCell<Vec<String>> = RefCell::default();
}

/// Evaluates conditions.
struct Conditions {
    environment: Environment<'static>,
    figures: Arc<Figures>,
}

impl Conditions {
    fn new(figures: Figures) -> Self {
        let figures = Arc::new(figures);
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        let given = |call: String, value: Result<Value, String>| {
            let value = value.map_err(|why| Error::new(ErrorKind::InvalidOperation, why))?;
            GIVEN.with_borrow_mut(|given| given.push(format!("{call} = {value}")));
            Ok(value)
        };
        let source = Arc::clone(&figures);
        environment.add_function(
            "median",
            move |chapter: &str, scenario: &str, variant: &str, metric: &str| {
                let value = source.median(chapter, scenario, variant, metric);
                given(
                    format!("{metric} of {chapter}, {scenario}, {variant}"),
                    value.map(Value::from),
                )
            },
        );
        let source = Arc::clone(&figures);
        environment.add_function("cell", move |file: &str, row: &str, column: &str| {
            given(
                format!("{file}, {row}, {column}"),
                source.cell(file, row, column),
            )
        });
        Self {
            environment,
            figures,
        }
    }

    /// `Ok` if the condition of a sentence is true; otherwise what is wrong with it, values included.
    fn check(&self, comment: &str, sentence: &str) -> Result<(), String> {
        if sentence.is_empty() {
            return Err(
                "begins a line, which ends the paragraph: put it behind its sentence".to_owned(),
            );
        }
        let condition = comment
            .strip_prefix("holds:")
            .ok_or("does not begin with `holds:`")?
            .trim();
        let expression = self.environment.compile_expression(condition);
        let expression = expression.map_err(|error| format!("does not parse: {error}"))?;
        let mut names: Vec<String> = expression.undeclared_variables(true).into_iter().collect();
        names.retain(|name| !["median", "cell"].contains(&&**name));
        names.sort_unstable();
        let mut used = Vec::new();
        for name in &names {
            let text = self
                .figures
                .text(name)
                .ok_or_else(|| format!("names `{name}`, which is no figure"))?;
            // The library would order a text and a number somehow.
            let compared = ["==", "!="].map(|by| [format!("{name} {by}"), format!("{by} {name}")]);
            let is_compared = compared
                .as_flattened()
                .iter()
                .any(|part| condition.contains(part));
            if number(text).is_none() && !is_compared {
                return Err(format!(
                    "names `{name}`, which is the text `{text}`: compare it by `==`"
                ));
            }
            used.push(format!("{name} = {text}"));
        }
        GIVEN.take();
        let value = expression.eval(self.figures.variables());
        let value = value.map_err(|error| format!("cannot be evaluated: {error}"))?;
        used.append(&mut GIVEN.take());
        match value.kind() {
            _ if used.is_empty() => Err("names no figure".to_owned()),
            ValueKind::Bool if value.is_true() => Ok(()),
            ValueKind::Bool => Err(format!("is false ({})", used.join(", "))),
            _ => Err("is neither true nor false".to_owned()),
        }
    }
}

#[test]
fn a_condition_holds_or_says_why_not() {
    let folder = tempfile::tempdir().unwrap();
    let values = [
        ("effect", "74"),
        ("in-tls", "68.7"),
        ("off", "48 %"),
        ("word", "proved"),
    ];
    let values = values.map(|(name, value)| {
        format!("<!-- ANCHOR: {name} -->\n{value}\n<!-- ANCHOR_END: {name} -->\n")
    });
    fs::create_dir(folder.path().join("chapter4")).unwrap();
    fs::write(folder.path().join("chapter4/values.md"), values.concat()).unwrap();
    let table = "| | `a` | b |\n| --- | ---: | ---: |\n| p99 | 2 ms | **3 s** |\n| p9 | 1 | 1 |\n";
    fs::write(folder.path().join("table.md"), table).unwrap();
    let conditions = Conditions::new(Figures::read(folder.path()));
    let check = |condition: &str| {
        let page = format!("# A\n\nOne. It\nfell. <!-- holds: {condition} -->\n");
        let [(4, sentence, comment)] = &comments(&page)[..] else {
            panic!("{page}");
        };
        assert_eq!(sentence, "It fell.");
        conditions.check(comment, sentence)
    };
    for holds in [
        "chapter4.in_tls < chapter4.effect",
        "0.9 < chapter4.in_tls / chapter4.effect < 1.1",
        "chapter4.off < 0.5 and not chapter4.in_tls > 70",
        "chapter4.word == 'proved'",
        "cell('table', 'p99', 'a') < cell('table', 'p99', 'b') / 1000",
    ] {
        assert_eq!(check(holds), Ok(()), "{holds}");
    }
    for (fails, why) in [
        (
            "chapter4.in_tls > chapter4.effect",
            "is false (chapter4.effect = 74, chapter4.in_tls = 68.7)",
        ),
        ("chapter4.in_tls >", "does not parse"),
        (
            "chapter4.nothing > 1",
            "`chapter4.nothing`, which is no figure",
        ),
        ("chapter4.word < 3", "compare it by `==`"),
        ("chapter4.effect", "neither true nor false"),
        ("1 < 2", "names no figure"),
        ("cell('table', 'p50', 'a') > 1", "no row `p50`"),
        ("cell('table', 'p9', 'a') > 1", "2 rows `p9`"),
        ("cell('table', 'p99', 'c') > 1", "no column `c`"),
        (
            "median('chapter4', 'one', 'problem', 'p99') > 1",
            "no record",
        ),
    ] {
        let said = check(fails).unwrap_err();
        assert!(said.contains(why), "{fails}: {said}");
    }
    for (page, why) in [
        (
            "It fell.\n<!-- holds: chapter4.effect > 1 -->\nMore.",
            "begins a line",
        ),
        ("It fell. <!-- hold: chapter4.effect > 1 -->", "`holds:`"),
    ] {
        let (_, sentence, comment) = &comments(page)[0];
        assert!(
            conditions
                .check(comment, sentence)
                .unwrap_err()
                .contains(why),
            "{page}"
        );
    }
}
