//! One module a command.

mod capture;
mod check;
mod compare;
mod doctor;
mod hint;
mod load;
mod load_url;
mod look;
mod numa;
mod profile;
mod prove;
mod reset;
mod setup;
mod solution;
mod status;
mod steps;

use crate::cli::{Cli, Command};
use crate::exit::{CliError, Exit};

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
        Command::Load(options) => match (options.chapter, &options.url) {
            (_, Some(url)) => load_url::run(url, &options),
            (Some(chapter), None) => load::run(chapter, &options),
            (None, None) => Err(CliError::usage(
                "name a chapter, or --url of your own service",
            )),
        },
        Command::Look(options) => look::run(&options),
        Command::Compare(options) => compare::run(&options),
        Command::Profile(options) => profile::run(&options),
        Command::Capture(options) => capture::run(&options),
        Command::Steps { output } => steps::run(output.format),
        Command::Doctor { output } => doctor::run(output.format),
        Command::Setup { tools } => setup::run(&tools),
    }
}
