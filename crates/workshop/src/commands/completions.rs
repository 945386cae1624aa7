//! `cargo workshop completions SHELL`.

use clap::CommandFactory;

use crate::cli::Cli;
use crate::exit::{CliError, Exit};

/// Prints the shell's completion script for a command called `workshop`.
#[allow(clippy::unnecessary_wraps)] // the signature of every command
pub(crate) fn run(shell: clap_complete::Shell) -> Result<Exit, CliError> {
    clap_complete::generate(
        shell,
        &mut Cli::command(),
        "workshop",
        &mut std::io::stdout(),
    );
    Ok(Exit::Good)
}
