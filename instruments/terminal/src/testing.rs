//! Steps that the tests of terminal programs share. Any error fails the test and is part of its message.
#![allow(clippy::missing_panics_doc)] // That is how a test fails.

use std::fmt::Debug;
use std::path::Path;
use std::process::{Command, Output};

/// Exit code and output of a command that has ended.
#[derive(Debug)]
pub struct Ran {
    /// The exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Ran {
    /// Runs a command to its end.
    pub fn of(command: &mut Command) -> Self {
        Self::from(command.output().unwrap())
    }

    /// Asserts exit code 0 and returns standard output.
    #[track_caller]
    pub fn good(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.out
    }

    /// Asserts the exit code, and that standard error is one sentence. Returns the sentence.
    #[track_caller]
    pub fn refused(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{self:?}");
        let sentence = self.err.trim_end();
        assert!(sentence.starts_with("error: "), "{self:?}");
        assert_eq!(sentence.lines().count(), 1, "{self:?}");
        assert!(!sentence.contains("panicked"), "{self:?}");
        sentence.to_owned()
    }

    /// Asserts exit code 0 and returns standard output as the JSON that it must be.
    #[track_caller]
    pub fn json(self) -> serde_json::Value {
        let out = self.good();
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
    }
}

/// Tries up to three times what a machine that stands still for a moment can spoil, and returns what was seen once it was
/// not. A fault spoils each attempt. An attempt asserts what the machine cannot touch.
#[track_caller]
pub fn once_in_three<Seen: Debug>(attempt: impl Fn() -> (bool, Seen)) -> Seen {
    let mut spoilt = Vec::new();
    while spoilt.len() < 3 {
        let (is_right, seen) = attempt();
        if is_right {
            return seen;
        }
        spoilt.push(seen);
    }
    panic!("not once in three times: {spoilt:?}");
}

/// Runs git in a folder, as somebody whom no configuration has to name, and returns its output without the last line
/// end.
#[track_caller]
pub fn git(folder: &Path, words: &[&str]) -> String {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=A", "-c", "user.email=a@example.org"]);
    let ran = git.args(words).current_dir(folder).output().unwrap();
    assert!(ran.status.success(), "git {words:?}: {ran:?}");
    String::from_utf8(ran.stdout).unwrap().trim().to_owned()
}

/// Returns the names of the files in a folder, sorted; none if there is no such folder.
pub fn names(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    let Ok(entries) = std::fs::read_dir(folder) else {
        return names;
    };
    for entry in entries {
        names.push(entry.unwrap().file_name().into_string().unwrap());
    }
    names.sort();
    names
}
