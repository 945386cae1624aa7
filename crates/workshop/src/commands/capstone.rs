//! `cargo workshop capstone`: the program `shop-bench`, built when it is first wanted.

use std::ffi::OsString;
use std::process::Command;

use terminal::ctrl_c;
use terminal::exit::{CliError, Exit};

use crate::chapters::Workshop;
use crate::commands::duel::asks_for_help;
use crate::compile;

/// Help of the program and of its commands, as a test of it records them: printing help must not compile anything.
const HELP: [(&str, &str); 6] = [
    ("", include_str!("../../../shop-bench/help/capstone.txt")),
    ("bench", include_str!("../../../shop-bench/help/bench.txt")),
    ("hint", include_str!("../../../shop-bench/help/hint.txt")),
    (
        "init-db",
        include_str!("../../../shop-bench/help/init-db.txt"),
    ),
    ("reset", include_str!("../../../shop-bench/help/reset.txt")),
    (
        "changes",
        include_str!("../../../shop-bench/help/changes.txt"),
    ),
];

/// Returns the help that the arguments ask for: that of the command that they name, or of the program.
fn help(arguments: &[OsString]) -> Option<&'static str> {
    let named = |name: &str| arguments.iter().any(|word| word == name);
    let asked = asks_for_help(arguments) || arguments.first().is_some_and(|word| word == "help");
    let of_command = HELP.iter().skip(1).find(|(name, _)| named(name));
    asked.then(|| of_command.unwrap_or(&HELP[0]).1)
}

/// The words of `shop-bench`, which need no compiling.
const NO_SCORE: &str = include_str!("../../../shop-bench/src/no-score.txt");

/// Becomes `shop-bench ARGUMENTS…`, or prints its help. Without a score there is nothing else to say.
pub(crate) fn run(arguments: &[OsString]) -> Result<Exit, CliError> {
    if let Some(help) = help(arguments) {
        print!("{help}");
        return Ok(Exit::Good);
    }
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
