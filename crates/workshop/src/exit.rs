//! Exit codes, and the one sentence that goes with a bad one.

use std::fmt;

use bench::drivers::DriverError;
use bench::rounds::RunError;
use bench::server::ServerError;
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

impl Exit {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Good => 0,
            Self::Bad => 1,
            Self::Usage => 2,
            Self::Invalid => 3,
            Self::Interrupted => 130,
        }
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

    pub(crate) fn invalid(sentence: impl fmt::Display) -> Self {
        Self::new(Exit::Invalid, sentence)
    }

    /// For `map_err`: what could not be done, and why.
    pub(crate) fn because<E: fmt::Display>(what: impl fmt::Display) -> impl FnOnce(E) -> Self {
        move |why| Self::bad(format!("{what}: {why}"))
    }

    /// As [`CliError::because`], of a child that was waited for: Ctrl-C is no fault of its.
    pub(crate) fn of_child(what: impl fmt::Display) -> impl FnOnce(std::io::Error) -> Self {
        move |why| match why.kind() {
            std::io::ErrorKind::Interrupted => Self::interrupted(),
            _ => Self::because(what)(why),
        }
    }

    /// A run that could not be carried through says nothing about the code.
    pub(crate) fn of_run(error: &RunError, interrupt: &Interrupt) -> Self {
        if error.is_interrupt() || interrupt.is_set() {
            return Self::interrupted();
        }
        match error {
            RunError::Server(ServerError::Ended { stderr, .. }) if stderr.contains(NO_VARIANT) => {
                Self::usage(no_variant(stderr))
            }
            RunError::Outside(why) => Self::bad(why),
            _ => Self::new(Exit::Invalid, error),
        }
    }

    pub(crate) fn interrupted() -> Self {
        Self::new(Exit::Interrupted, "interrupted; nothing was kept")
    }

    pub(crate) fn new(exit: Exit, sentence: impl fmt::Display) -> Self {
        Self {
            exit,
            sentence: sentence.to_string(),
        }
    }
}

impl From<DriverError> for CliError {
    fn from(error: DriverError) -> Self {
        match error {
            DriverError::Interrupted => Self::interrupted(),
            other => Self::bad(other),
        }
    }
}

impl From<numa::Error> for CliError {
    fn from(error: numa::Error) -> Self {
        match error {
            numa::Error::Interrupted => Self::interrupted(),
            numa::Error::Parts(_) => Self::bad(error),
            numa::Error::Run(_) => Self::new(Exit::Invalid, error),
        }
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for CliError {}

/// How a chapter's server calls its argument when it refuses a variant. Only that program knows
/// its variants.
const NO_VARIANT: &str = "'[VARIANT]'";

/// The server's refusal as one line. It names the variants, and the one that was meant perhaps.
fn no_variant(refusal: &str) -> String {
    refusal
        .lines()
        .map(|line| line.trim().trim_matches(['[', ']']))
        .filter(|line| !line.is_empty() && !line.starts_with("For more information"))
        .map(|line| line.trim_start_matches("error: "))
        .collect::<Vec<_>>()
        .join("; ")
        .replace(NO_VARIANT, "--variant")
}
