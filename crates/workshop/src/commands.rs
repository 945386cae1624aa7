//! One module a command.

mod capstone;
mod capture;
mod check;
mod derived;
mod doctor;
mod duel;
mod hint;
mod load;
mod numa;
mod predict;
mod profile;
mod prove;
mod reset;
mod setup;
mod solution;
mod status;
mod steps;
mod watch;

use crate::cli::{Cli, Command};
use terminal::exit::{CliError, Exit};

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
        Command::Watch { chapter } => watch::run(chapter),
        Command::Predict(options) => predict::run(&options),
        Command::Hint {
            chapter,
            upto,
            output,
        } => hint::run(chapter, upto, output.format),
        Command::Solution { chapter } => solution::run(chapter),
        Command::Reset { chapter } => reset::run(chapter),
        Command::Load(options) => load::run(&options),
        Command::LoadOwn { arguments } => duel::run("load", &arguments),
        Command::Look(options) => look_client::run(&options),
        Command::Compare { arguments } => duel::run("compare", &arguments),
        Command::Profile(options) => profile::run(&options),
        Command::Capstone { arguments } => capstone::run(&arguments),
        Command::Capture(options) => capture::run(&options),
        Command::Steps { of, output } => steps::run(of, output.format),
        Command::Doctor { output } => doctor::run(output.format),
        Command::Setup { tools } => setup::run(&tools),
    }
}
