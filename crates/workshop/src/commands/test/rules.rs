//! What the repository's files must keep to, each rule a function of their text.

pub(super) mod book;
pub(super) mod length;
pub(super) mod parts;
pub(super) mod privacy;

use std::fmt;

/// A rule that is broken: where, and what to do.
#[derive(Debug)]
pub(super) struct Broken {
    /// `path` or `path:line`.
    place: String,
    what: String,
}

impl Broken {
    fn at(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self {
            place: format!("{path}:{line}"),
            what: what.into(),
        }
    }

    fn in_file(path: &str, what: impl Into<String>) -> Self {
        Self {
            place: path.to_owned(),
            what: what.into(),
        }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}
