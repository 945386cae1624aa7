//! What a check is.

use bench::child;
use numa::Parts;

use super::context::Context;
use crate::exit::CliError;
use crate::tools::{self, Tools};

pub(super) struct Check {
    /// Lower case, no spaces: what `cargo workshop test NAME` takes.
    pub(super) name: &'static str,
    /// What holds when it passes.
    pub(super) about: &'static str,
    pub(super) run: fn(&Context<'_>) -> Result<(), CliError>,
    /// What it cannot do without, beside Rust.
    pub(super) needs: &'static [Need],
    /// Whether a push does without it.
    pub(super) deep: bool,
}

impl Check {
    pub(super) const fn new(
        name: &'static str,
        about: &'static str,
        run: fn(&Context<'_>) -> Result<(), CliError>,
    ) -> Self {
        Self {
            name,
            about,
            run,
            needs: &[],
            deep: false,
        }
    }

    pub(super) const fn needs(mut self, needs: &'static [Need]) -> Self {
        self.needs = needs;
        self
    }

    pub(super) const fn deep(mut self) -> Self {
        self.deep = true;
        self
    }

    /// What is missing for it, and what to do about it.
    pub(super) fn missing(&self, tools: &Tools) -> Option<String> {
        self.needs.iter().find_map(|need| need.missing(tools))
    }

    /// Whether `cargo workshop setup` may bring something that it needs.
    pub(super) fn needs_setup(&self) -> bool {
        let brought =
            |need: &Need| !matches!(need, Need::Git | Need::Go | Need::Nginx | Need::Postgres);
        self.needs.iter().any(brought)
    }
}

/// A program that a machine may lack.
#[derive(Debug, Clone, Copy)]
pub(super) enum Need {
    Git,
    Go,
    Nginx,
    Postgres,
    K6,
    Locust,
    Mdbook,
    Browser,
    /// QEMU and a kernel, for a machine with several NUMA nodes.
    Machine,
}

impl Need {
    fn missing(self, tools: &Tools) -> Option<String> {
        let (there, remedy) = match self {
            Self::Git => (child::find("git").is_some(), "git: https://git-scm.com"),
            Self::Go => (tools::go().is_some(), "Go: https://go.dev/dl"),
            Self::Nginx => (
                tools::nginx().is_some(),
                "nginx: https://nginx.org (on Debian: apt-get install nginx-light)",
            ),
            Self::Postgres => (
                tools::postgres().is_some(),
                "PostgreSQL: https://www.postgresql.org (on Debian: apt-get install postgresql)",
            ),
            Self::K6 => (
                tools.k6_version().as_deref() == Some(tools::K6),
                "k6: cargo workshop setup k6",
            ),
            Self::Locust => (
                tools.venv_is_current() && tools.locust_pin().is_some(),
                "Locust: cargo workshop setup locust",
            ),
            Self::Mdbook => (
                tools.mdbook_version().as_deref() == Some(tools::MDBOOK),
                "mdbook: cargo workshop setup mdbook",
            ),
            Self::Browser => (
                tools::browser().is_some(),
                "a browser: cargo workshop setup browser",
            ),
            Self::Machine => return Parts::find(&tools.kernel()).err(),
        };
        (!there).then(|| format!("needs {remedy}"))
    }
}
