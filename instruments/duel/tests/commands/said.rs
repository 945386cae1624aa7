//! Exit code and output of a command.

use std::process::{Command, Output};

/// Output of a command, and its exit code.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Said {
    /// Runs a command to its end.
    pub(crate) fn of(command: &mut Command) -> Self {
        Self::from(command.output().unwrap())
    }
}
