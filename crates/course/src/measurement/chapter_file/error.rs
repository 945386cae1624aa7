//! Errors of a `chapter.toml` that cannot be read: one clear sentence with file, line and cause.

/// Error in a `chapter.toml`: its place, its cause and its remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}{}: {what}.", .line.map_or_else(String::new, |line| format!(" line {line}")))]
pub struct ChapterFileError {
    /// The file, as the caller calls it.
    pub file: String,
    /// The line, counted from 1, where one is known.
    pub line: Option<usize>,
    /// Cause and remedy.
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

    /// Translates an error of the TOML parser into the words of a chapter's author.
    pub(super) fn refused(text: &str, file: &str, error: &toml::de::Error) -> Self {
        let message = error.message().lines().next().unwrap_or("not understood");
        let what = message
            .replace("missing field", "missing key")
            .replace("unknown field", "unknown key")
            .replace("expected u32", "expected a whole number, 0 or more")
            .replace("expected f64", "expected a number");
        Self {
            file: file.to_owned(),
            line: error.span().map(|span| {
                let before = text.get(..span.start).unwrap_or(text);
                1 + before.matches('\n').count()
            }),
            what: in_a_line(&what),
        }
    }

    /// Makes an error that belongs to no single line, such as a name that stands for nothing.
    pub(super) fn placeless(file: &str, what: &str) -> Self {
        Self {
            file: file.to_owned(),
            line: None,
            what: in_a_line(what),
        }
    }
}

/// Makes one line that a terminal only shows: a quoted name may hold a line break, or a sequence that moves the cursor.
fn in_a_line(what: &str) -> String {
    ecosystem::printable(what).replace('\n', "\\n")
}
