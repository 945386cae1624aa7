//! One clear sentence for a `chapter.toml` that cannot be read: file, line, what is wrong.

/// What is wrong with a `chapter.toml`, where, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}{}: {what}.", .line.map_or_else(String::new, |line| format!(" line {line}")))]
pub struct ChapterFileError {
    /// The file, as the caller calls it.
    pub file: String,
    /// The line, counted from 1, where one is known.
    pub line: Option<usize>,
    /// What is wrong, and what to do about it.
    pub what: String,
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
        Self::placeless(file, &format!("cannot be read ({error}); {remedy}"))
    }

    /// What the TOML parser refused, in the words of somebody who writes a chapter.
    pub(super) fn refused(text: &str, file: &str, error: &toml::de::Error) -> Self {
        let message = error.message().lines().next().unwrap_or("not understood");
        let what = message
            .replace("missing field", "missing key")
            .replace("unknown field", "unknown key")
            .replace("expected u32", "expected a whole number, 0 or more")
            .replace("expected f64", "expected a number");
        let line = |start: usize| 1 + text.get(..start).unwrap_or(text).matches('\n').count();
        Self {
            file: file.to_owned(),
            line: error.span().map(|span| line(span.start)),
            what: printable(&what),
        }
    }

    /// Something that is wrong in no line by itself, such as a name that stands for nothing.
    pub(super) fn placeless(file: &str, what: &str) -> Self {
        Self {
            file: file.to_owned(),
            line: None,
            what: printable(what),
        }
    }
}

/// A name in quotes may hold what ends a line, or moves a terminal's cursor.
fn printable(what: &str) -> String {
    what.replace(char::is_control, "\u{fffd}")
}
