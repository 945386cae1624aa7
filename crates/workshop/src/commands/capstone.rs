//! `cargo workshop capstone`: the program `shop-bench`, built when it is first wanted.

use std::ffi::OsString;
use std::process::Command;

use terminal::ctrl_c;
use terminal::exit::{CliError, Exit};

use crate::chapters::Workshop;
use crate::compile;

/// Becomes `shop-bench ARGUMENTS…`.
pub(crate) fn run(arguments: &[OsString]) -> Result<Exit, CliError> {
    let workshop = Workshop::find()?;
    let program = compile::other_program(&workshop, "shop-bench", &ctrl_c::watch())?;
    let mut bench = Command::new(program);
    bench.args(arguments);
    Err(compile::hand_over(bench))
}
