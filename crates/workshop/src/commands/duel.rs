//! `cargo workshop compare` and `load --url`: the program `duel`, built when it is first wanted.

use std::ffi::OsString;
use std::process::Command;

use terminal::ctrl_c;
use terminal::exit::{CliError, Exit};

use crate::chapters::Workshop;
use crate::compile;
use crate::tools::Tools;

/// Returns whether the arguments of another program ask for its help.
pub(crate) fn asks_for_help(arguments: &[OsString]) -> bool {
    arguments
        .iter()
        .any(|word| word == "--help" || word == "-h")
}

/// Help of `duel compare`, as a test of duel records it: printing help must not compile anything.
const COMPARE_HELP: &str = include_str!("../../../../instruments/duel/help/compare.txt");

/// Becomes `duel COMMAND ARGUMENTS…`, or prints the help of `compare`.
pub(crate) fn run(command: &str, arguments: &[OsString]) -> Result<Exit, CliError> {
    if command == "compare" && asks_for_help(arguments) {
        print!(
            "{}",
            COMPARE_HELP.replace("duel compare", "cargo workshop compare")
        );
        return Ok(Exit::Good);
    }
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
