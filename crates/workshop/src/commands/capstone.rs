//! `cargo workshop capstone`: the program `shop-bench`, built when it is first wanted.

use std::ffi::OsString;
use std::process::Command;

use terminal::ctrl_c;
use terminal::exit::{CliError, Exit};

use crate::chapters::Workshop;
use crate::compile;

/// The words of `shop-bench`, which need no compiling.
const NO_SCORE: &str = include_str!("../../../shop-bench/src/no-score.txt");

/// Becomes `shop-bench ARGUMENTS…`, unless there is nothing to say yet.
pub(crate) fn run(arguments: &[OsString]) -> Result<Exit, CliError> {
    let workshop = Workshop::find()?;
    if arguments.is_empty() && !workshop.state().join("capstone/history.json").exists() {
        print!("{NO_SCORE}");
        return Ok(Exit::Good);
    }
    let program = compile::other_program(&workshop, "shop-bench", &ctrl_c::watch())?;
    let mut bench = Command::new(program);
    bench.args(arguments);
    Err(compile::hand_over(bench))
}
