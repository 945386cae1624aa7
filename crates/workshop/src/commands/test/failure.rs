//! Why a check did not pass.

use crate::exit::{CliError, Exit};

#[derive(Debug)]
pub(super) enum Failure {
    /// In a sentence; what the commands printed is in the log.
    Because(String),
    /// Ctrl-C.
    Interrupted,
}

impl From<CliError> for Failure {
    fn from(problem: CliError) -> Self {
        match problem.exit {
            Exit::Interrupted => Self::Interrupted,
            _ => Self::Because(problem.to_string()),
        }
    }
}

/// A failure in a sentence.
pub(super) fn failed<T>(sentence: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::Because(sentence.into()))
}
