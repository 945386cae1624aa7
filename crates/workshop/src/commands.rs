//! One module a command.

mod capstone;
mod capture;
mod check;
mod derived;
mod doctor;
mod hint;
mod load;
mod numa;
mod profile;
mod prove;
mod reset;
mod setup;
mod solution;
mod status;
mod steps;

pub(crate) use capstone::team;

use duel::cli::Program;

use crate::chapters::Workshop;
use crate::cli::{Cli, Command};
use crate::tools::Tools;
use duel::cli::exit::{CliError, Exit};

pub(crate) fn run(cli: Cli) -> Result<Exit, CliError> {
    let Some(command) = cli.command else {
        return status::run(cli.output.format);
    };
    match command {
        Command::Prove(options) => prove::run(&options),
        Command::Check {
            chapter,
            variant,
            regions,
            output,
        } => match regions {
            Some(nodes) => numa::check(chapter, nodes, output.format),
            None => check::run(chapter, &variant, output.format),
        },
        Command::Hint {
            chapter,
            upto,
            output,
        } => hint::run(chapter, upto, output.format),
        Command::Solution { chapter } => solution::run(chapter),
        Command::Reset { chapter } => reset::run(chapter),
        Command::Load(options) => match options.chapter {
            Some(chapter) => load::run(chapter, &options),
            None => duel::cli::load::run(&options.of_a_service(), &program()),
        },
        Command::Look(options) => duel::cli::look::run(&options),
        Command::Compare(options) => duel::cli::compare::run(&options, &program()),
        Command::Profile(options) => profile::run(&options),
        Command::Capstone { command, output } => capstone::run(command, output.format),
        Command::Capture(options) => capture::run(&options),
        Command::Steps { output } => steps::run(output.format),
        Command::Doctor { output } => doctor::run(output.format),
        Command::Setup { tools } => setup::run(&tools),
    }
}

/// What the commands for a reader's own service find here.
fn program() -> Program {
    let workshop = Workshop::find().ok();
    Program {
        locust: workshop.map(|workshop| Tools::of(&workshop).in_venv("locust")),
    }
}
