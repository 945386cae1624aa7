//! What a check is.

use super::context::Context;
use crate::exit::{CliError, Exit};
use crate::regions;
use crate::tools::{self, Tools};

/// One named check.
pub(super) struct Check {
    /// Lower case, no spaces: what `cargo workshop test NAME` takes.
    pub(super) name: &'static str,
    /// What holds when it passes.
    pub(super) about: &'static str,
    /// What it cannot do without, beside Rust.
    pub(super) needs: &'static [Need],
    /// Whether it measures or needs tools: these are there by then, and nothing else runs.
    pub(super) stands_alone: bool,
    pub(super) run: fn(&Context<'_>) -> Result<(), Failure>,
}

/// Why a check did not pass.
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

impl Failure {
    /// Says of what it is.
    pub(super) fn of(self, what: &str) -> Self {
        match self {
            Self::Because(sentence) => Self::Because(format!("{what}: {sentence}")),
            Self::Interrupted => Self::Interrupted,
        }
    }
}

/// A failure in a sentence.
pub(super) fn failed<T>(sentence: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::Because(sentence.into()))
}

/// A program that a machine may lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    Git,
    Go,
    Nginx,
    K6,
    Locust,
    Mdbook,
    Browser,
    /// QEMU and a kernel, for a machine with several memory regions.
    Machine,
}

impl Need {
    /// Whether `cargo workshop setup` may bring it.
    pub(super) fn is_set_up(self) -> bool {
        matches!(
            self,
            Self::K6 | Self::Locust | Self::Mdbook | Self::Browser | Self::Machine
        )
    }

    /// What to do when it is not there.
    pub(super) fn missing(self, tools: &Tools) -> Option<String> {
        if self == Self::Machine {
            return regions::missing(tools);
        }
        let (there, remedy) = match self {
            Self::Git => (
                tools::on_path("git").is_some(),
                "needs git: https://git-scm.com",
            ),
            Self::Go => (tools::go().is_some(), "needs Go: https://go.dev/dl"),
            Self::Nginx => (
                tools::nginx().is_some(),
                "needs nginx: https://nginx.org (on Debian: apt-get install nginx-light)",
            ),
            Self::K6 => (
                tools.k6_version().as_deref() == Some(tools::K6),
                "needs k6: cargo workshop setup k6",
            ),
            Self::Locust => (
                tools.venv_is_current() && tools.locust_pin().is_some(),
                "needs Locust: cargo workshop setup locust",
            ),
            Self::Mdbook => (
                tools.mdbook_version().as_deref() == Some(tools::MDBOOK),
                "needs mdbook: cargo workshop setup mdbook",
            ),
            Self::Browser => (
                tools::browser().is_some(),
                "needs a browser: see cargo workshop doctor",
            ),
            Self::Machine => (true, ""),
        };
        (!there).then(|| remedy.to_owned())
    }
}
