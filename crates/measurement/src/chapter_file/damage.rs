//! One clear sentence for a damaged `chapter.toml`: file, line, key, remedy.

use std::ops::Range;

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// What is wrong with a `chapter.toml`, where, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}{}: {what}; {remedy}.", place(*.line, .key.as_deref()))]
pub struct ChapterFileError {
    /// The file, as the caller calls it.
    pub file: String,
    /// The line, counted from 1, where one is known.
    pub line: Option<usize>,
    /// The key with its table, such as `settings.check.users`.
    pub key: Option<String>,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
}

fn place(line: Option<usize>, key: Option<&str>) -> String {
    let line = line.map(|line| format!(" line {line}"));
    let key = key.map(|key| format!(" ({key})"));
    format!("{}{}", line.unwrap_or_default(), key.unwrap_or_default())
}

/// A value that parses but makes no sense.
#[derive(Debug)]
pub(super) struct Nonsense {
    pub(super) key: String,
    pub(super) what: String,
    pub(super) remedy: String,
}

impl ChapterFileError {
    pub(super) fn unreadable(file: &str, error: &std::io::Error) -> Self {
        let remedy = match error.kind() {
            std::io::ErrorKind::NotFound => {
                "restore it with `git checkout`, or name a chapter that exists"
            }
            std::io::ErrorKind::InvalidData => "save it as UTF-8 text",
            _ => "check that you may read it",
        };
        Self {
            file: file.to_owned(),
            line: None,
            key: None,
            what: format!("cannot be read ({error})"),
            remedy: remedy.to_owned(),
        }
    }

    /// The file is not TOML, or its keys or types are not those of a chapter.
    pub(super) fn of_shape(text: &str, file: &str, error: &toml::de::Error) -> Self {
        let message = error.message().lines().next().unwrap_or("not understood");
        let span = error.span();
        let document = DeTable::parse(text).ok();
        let key = match (&document, &span) {
            (Some(document), Some(span)) => key_at(document.get_ref(), span),
            _ => None,
        };
        // The span of a missing key is the table that lacks it.
        let missing = message
            .strip_prefix("missing field `")
            .and_then(|rest| rest.strip_suffix('`'));
        let key = match (key, missing) {
            (Some(table), Some(missing)) => Some(format!("{table}.{missing}")),
            (key, missing) => key.or_else(|| missing.map(str::to_owned)),
        };
        Self {
            file: file.to_owned(),
            line: span.map(|span| line_of(text, span.start)),
            key,
            what: in_plain_words(message),
            remedy: remedy_for(message, document.is_some()).to_owned(),
        }
    }

    /// The file says something that cannot be meant.
    pub(super) fn of_meaning(text: &str, file: &str, wrong: Nonsense) -> Self {
        let document = DeTable::parse(text).ok();
        let line = document
            .and_then(|document| offset_of(document.get_ref(), &wrong.key))
            .map(|offset| line_of(text, offset));
        Self {
            file: file.to_owned(),
            line,
            key: Some(wrong.key),
            what: wrong.what,
            remedy: wrong.remedy,
        }
    }
}

/// Who writes a chapter need not know how Rust calls its numbers.
fn in_plain_words(message: &str) -> String {
    message
        .replace("missing field", "missing key")
        .replace("unknown field", "unknown key")
        .replace("expected u32", "expected a whole number, 0 or more")
        .replace("expected f64", "expected a number")
}

fn remedy_for(message: &str, is_toml: bool) -> &'static str {
    if !is_toml {
        "mend the TOML at that place, for instance a missing quote, bracket or `=`"
    } else if message.starts_with("missing field") {
        "add it; another chapter's file shows how"
    } else if message.starts_with("unknown field") || message.starts_with("unknown variant") {
        "correct the spelling or remove it"
    } else {
        "write a value of the expected kind"
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    let before = text.get(..offset).unwrap_or(text);
    1 + before.matches('\n').count()
}

/// The dotted key whose name or value covers `span`, as deep as it goes.
fn key_at(table: &DeTable<'_>, span: &Range<usize>) -> Option<String> {
    table.iter().find_map(|(key, value)| {
        let name = key.get_ref();
        let within = |outer: Range<usize>| outer.start <= span.start && span.start < outer.end;
        let deeper = match value.get_ref() {
            DeValue::Table(inner) => key_at(inner, span),
            DeValue::Array(items) => items.iter().find_map(|item| match item.get_ref() {
                DeValue::Table(inner) => {
                    key_at(inner, span).or_else(|| within(item.span()).then(String::new))
                }
                _ => None,
            }),
            _ => None,
        };
        match deeper {
            Some(inner) if inner.is_empty() => Some(name.to_string()),
            Some(inner) => Some(format!("{name}.{inner}")),
            None => (within(key.span()) || within(value.span())).then(|| name.to_string()),
        }
    })
}

/// Where the key, or the nearest table that would hold it, stands in the text.
/// A step of the dotted path may be an index into an array of tables.
fn offset_of(table: &DeTable<'_>, dotted: &str) -> Option<usize> {
    let mut found = None;
    let mut here: Option<&DeTable<'_>> = Some(table);
    let mut items: Option<&[Spanned<DeValue<'_>>]> = None;
    for step in dotted.split('.') {
        let value = if let Some(items) = items.take() {
            let item = items.get(step.parse::<usize>().ok()?)?;
            found = Some(item.span().start);
            item.get_ref()
        } else {
            let Some((key, value)) = here?.iter().find(|(key, _)| key.get_ref() == step) else {
                break;
            };
            found = Some(key.span().start);
            value.get_ref()
        };
        here = value.as_table();
        items = value.as_array().map(|array| &array[..]);
    }
    found
}
