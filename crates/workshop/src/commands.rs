//! One module a command.

mod completions;

use crate::cli::{Cli, Command};
use crate::exit::{Exit, Problem};

/// Runs what was asked for.
pub(crate) fn run(cli: Cli) -> Result<Exit, Problem> {
    match cli.command {
        Some(Command::Completions { shell }) => completions::run(shell),
        _ => Err(Problem::bad("this command is not built yet")),
    }
}
