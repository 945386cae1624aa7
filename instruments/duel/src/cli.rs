//! The command line.

#[macro_use]
pub mod out;

mod access_log;
pub mod arguments;
mod bisect;
mod by_locust;
pub mod compare;
pub mod ctrl_c;
pub mod exit;
pub mod files;
pub mod git;
pub mod json;
pub mod load;
pub mod look;
pub mod options;
mod requests;
mod revision;
mod scripts;
pub mod terminal;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use self::exit::Exit;

/// Compare two servers, load one, or look into one.
#[derive(Debug, Parser)]
#[command(name = "duel", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Compare two builds of a service: which is faster, and how sure is that?
    Compare(Box<options::Compare>),
    /// Find the commit that made a service slower
    Bisect(Box<options::Bisect>),
    /// Put a load on a service
    Load(Box<options::Load>),
    /// Ask all instruments of a service that has debug-endpoints, under your load
    Look(options::Look),
}

/// The program that these commands are part of.
#[derive(Debug, Clone, Default)]
pub struct Program {
    /// Where Locust is, if not in `PATH`.
    pub locust: Option<PathBuf>,
}

/// What `duel` does: reads the arguments, does what they say, and ends with the exit code that they are
/// documented to.
pub fn main() -> ExitCode {
    let read = with_negative_numbers(Cli::command()).get_matches();
    let cli = Cli::from_arg_matches(&read).unwrap_or_else(|error| error.exit());
    let program = Program::default();
    exit(match &cli.command {
        Command::Compare(options) => compare::run(options, &program),
        Command::Bisect(options) => bisect::run(options),
        Command::Load(options) => load::run(options, &program),
        Command::Look(options) => look::run(options),
    })
}

/// `-1` is a wrong number and no option, wherever it stands.
pub fn with_negative_numbers(command: clap::Command) -> clap::Command {
    command.mut_subcommands(|command| {
        command.mut_args(|argument| {
            let takes_value = argument.get_action().takes_values();
            argument.allow_negative_numbers(takes_value)
        })
    })
}

/// Says what went wrong, if something did, and with what the process is to end.
pub fn exit(result: Result<Exit, exit::CliError>) -> ExitCode {
    let mut exit = result.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        error.exit
    });
    if let Some(error) = out::lost() {
        eprintln!(
            "error: standard output cannot be written to ({error}), and some of it is lost: free some \
             space, or send it elsewhere"
        );
        exit = exit.max(Exit::Usage);
    }
    exit.code().into()
}
