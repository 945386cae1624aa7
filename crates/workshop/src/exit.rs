//! Exit codes, and the one sentence that goes with a bad one.

use std::fmt;
use std::process::ExitCode;

use bench::agreement::AgreementError;
use bench::drivers::DriverError;
use bench::rounds::RunError;
use loadgen::interrupt::Interrupt;

/// What the exit code says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// Proved, passed, done.
    Good,
    /// Not proved, not passed, could not be done.
    Bad,
    /// The command line or a file that it names makes no sense.
    Usage,
    /// The run says nothing about the code: generator-bound, too noisy, unoptimised, ….
    Invalid,
    /// Ctrl-C.
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Good => 0,
            Exit::Bad => 1,
            Exit::Usage => 2,
            Exit::Invalid => 3,
            Exit::Interrupted => 130,
        })
    }
}

/// Why a command stopped: one sentence with what, where and what to do.
#[derive(Debug)]
pub(crate) struct CliError {
    pub(crate) exit: Exit,
    sentence: String,
}

impl CliError {
    pub(crate) fn bad(sentence: impl fmt::Display) -> Self {
        Self::new(Exit::Bad, sentence)
    }

    pub(crate) fn usage(sentence: impl fmt::Display) -> Self {
        Self::new(Exit::Usage, sentence)
    }

    /// A run that could not be carried through says nothing about the code.
    pub(crate) fn of_run(error: &RunError, interrupt: &Interrupt) -> Self {
        if error.is_interrupt() || interrupt.is_set() {
            Self::new(Exit::Interrupted, "interrupted; nothing was kept")
        } else {
            Self::new(Exit::Invalid, error)
        }
    }

    /// As [`CliError::of_run`], of a run that k6 and Locust had a part in.
    pub(crate) fn of_generators(error: AgreementError, interrupt: &Interrupt) -> Self {
        match error {
            AgreementError::Proof(error) => Self::of_run(&error, interrupt),
            AgreementError::Driver(DriverError::Interrupted) => {
                Self::new(Exit::Interrupted, "interrupted; nothing was kept")
            }
            AgreementError::Driver(error) => Self::bad(error),
        }
    }

    pub(crate) fn new(exit: Exit, sentence: impl fmt::Display) -> Self {
        Self {
            exit,
            sentence: sentence.to_string(),
        }
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for CliError {}
