//! Exit codes, and the sentence that goes with a bad one.

use std::fmt;
use std::process::ExitCode;

use children::tool::DriverError;
use ecosystem::printable;

/// Meaning of an exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// Proved, passed, done.
    Good,
    /// Not proved, not passed, could not be done.
    Bad,
    /// The command line or a file that it names makes no sense.
    Usage,
    /// The run says nothing about the code: generator-bound, too noisy, unoptimised, ….
    Invalid,
    /// The run was too noisy or too short for a verdict, and `--inconclusive fail` asks for a code of its own.
    Inconclusive,
    /// Ctrl-C.
    Interrupted,
}

impl Exit {
    /// Returns the number that the process ends with.
    pub fn code(self) -> u8 {
        match self {
            Self::Good => 0,
            Self::Bad => 1,
            Self::Usage => 2,
            Self::Invalid => 3,
            Self::Inconclusive => 4,
            Self::Interrupted => 130,
        }
    }
}

/// Reason why a command stopped: one sentence that says what is wrong, where, and what to do.
#[derive(Debug)]
pub struct CliError {
    /// The exit code that goes with it.
    pub exit: Exit,
    sentence: String,
}

impl CliError {
    /// Reports that something could not be done.
    pub fn bad(sentence: impl fmt::Display) -> Self {
        Self::new(Exit::Bad, sentence)
    }

    /// Reports that the command line, or a file that it names, makes no sense.
    pub fn usage(sentence: impl fmt::Display) -> Self {
        Self::new(Exit::Usage, sentence)
    }

    /// Reports that a run says nothing about the code.
    pub fn invalid(sentence: impl fmt::Display) -> Self {
        Self::new(Exit::Invalid, sentence)
    }

    /// Converts an error in `map_err`: `what` could not be done, and the error says why.
    pub fn because<E: fmt::Display>(what: impl fmt::Display) -> impl FnOnce(E) -> Self {
        move |why| Self::bad(format!("{what}: {why}"))
    }

    /// Converts an error of waiting for a child, as [`CliError::because`] does. An interrupted wait counts as Ctrl-C,
    /// not as the child's fault.
    pub fn of_child(what: impl fmt::Display) -> impl FnOnce(std::io::Error) -> Self {
        move |why| match why.kind() {
            std::io::ErrorKind::Interrupted => Self::interrupted(),
            _ => Self::because(what)(why),
        }
    }

    /// Reports that Ctrl-C ended the command.
    pub fn interrupted() -> Self {
        Self::new(Exit::Interrupted, "interrupted; nothing was kept")
    }

    /// Reports a sentence with any exit code. Control characters in it are made visible, because it may quote a server.
    pub fn new(exit: Exit, sentence: impl fmt::Display) -> Self {
        Self {
            exit,
            sentence: printable(&sentence.to_string()),
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

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for CliError {}

/// Prints the error, if there is one, and returns the exit code of the process.
pub fn end(result: Result<Exit, CliError>) -> ExitCode {
    let mut exit = match result {
        Ok(exit) => exit,
        Err(error) => {
            eprintln!("error: {error}");
            error.exit
        }
    };
    if let Some(error) = crate::lost() {
        eprintln!(
            "error: standard output cannot be written to ({error}), and some of it is lost: free some \
             space, or send it elsewhere"
        );
        exit = exit.max(Exit::Usage);
    }
    exit.code().into()
}
