//! One module a command.

mod capture;
mod check;
mod completions;
mod doctor;
mod hint;
mod load;
mod profile;
mod prove;
mod regions;
mod reset;
mod setup;
mod solution;
mod status;
mod steps;
mod test;

use crate::cli::{Cli, Command};
use crate::exit::{Exit, Problem};

/// Runs what was asked for.
#[expect(clippy::too_many_lines, reason = "an arm a command, and nothing in it")]
pub(crate) fn run(cli: Cli) -> Result<Exit, Problem> {
    match cli.command {
        None => status::run(cli.output.format),
        Some(Command::Hint {
            chapter,
            upto,
            output,
        }) => hint::run(chapter, upto, output.format),
        Some(Command::Solution { chapter }) => solution::run(chapter),
        Some(Command::Reset { chapter }) => reset::run(chapter),
        Some(Command::Doctor { output }) => doctor::run(output.format),
        Some(Command::Test {
            names,
            chapters,
            deep,
            list,
        }) => test::run(&names, &chapters, deep, list),
        Some(Command::Setup { tools }) => setup::run(&tools),
        Some(Command::Steps { output }) => steps::run(output.format),
        Some(Command::Completions { shell }) => completions::run(shell),
        Some(Command::Check {
            chapter,
            regions,
            output,
        }) => match regions {
            Some(regions) => regions::check(chapter, regions, output.format),
            None => check::run(chapter, output.format),
        },
        Some(Command::Capture {
            chapters,
            derive,
            verify,
            measuring,
            regions,
            processors,
        }) => match regions {
            Some(regions) => regions::capture(&chapters, regions, processors),
            None => capture::run(&capture::Options {
                chapters,
                derive,
                verify,
                measuring,
            }),
        },
        Some(Command::Prove {
            chapters,
            output,
            seed,
            pairs,
            report,
            all_generators,
            matrix,
            upstream,
            regions,
            processors,
        }) => match regions {
            Some(regions) => regions::prove(&chapters, regions, processors, report, output.format),
            None => prove::run(&prove::Options {
                chapters,
                seed,
                pairs,
                report,
                all_generators,
                matrix,
                upstream,
                format: output.format,
            }),
        },
        Some(Command::Profile {
            chapter,
            kind,
            variant,
            seconds,
            into,
            output,
        }) => profile::run(&profile::Options {
            chapter,
            kind,
            variant,
            seconds,
            into,
            format: output.format,
        }),
        Some(Command::Load {
            chapter,
            with,
            variant,
            users,
            think,
            rate,
            write_share,
            seconds,
            host,
            output,
        }) => load::run(&load::Options {
            chapter,
            with,
            variant,
            users,
            think,
            rate,
            write_share,
            seconds,
            host,
            format: output.format,
        }),
    }
}
