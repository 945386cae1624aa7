//! `cargo workshop compare` and `load --url`: the program `duel`, built when it is first wanted.

use std::ffi::OsString;
use std::process::Command;

use terminal::ctrl_c;
use terminal::exit::{CliError, Exit};

use crate::chapters::Workshop;
use crate::compile;
use crate::tools::Tools;

/// Becomes `duel COMMAND ARGUMENTS…`.
pub(crate) fn run(command: &str, arguments: &[OsString]) -> Result<Exit, CliError> {
    let workshop = Workshop::of_this_build();
    let program = compile::other_program(&workshop, "duel", &ctrl_c::watch())?;
    let mut duel = Command::new(program);
    duel.arg(command)
        .args(arguments)
        // Its messages name the command that the reader typed.
        .env("DUEL_CALLED", "cargo workshop")
        .env("PATH", Tools::of(&workshop).path_with_venv());
    Err(compile::hand_over(duel))
}
