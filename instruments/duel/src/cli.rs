//! The command line.

mod access_log;
mod bisect;
mod by_locust;
pub(crate) mod compare;
mod init;
pub(crate) mod load;
pub(crate) mod options;
mod requests;
mod revision;
mod scripts;
mod spec;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use terminal::arguments::with_negative_numbers;
use terminal::exit::end;

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
    /// Write workflows that compare each pull request of this repository
    Init(options::Init),
    /// Ask all instruments of a service that has debug-endpoints, under your load
    Look(look_client::Look),
}

/// Runs `duel`: reads the arguments, runs the command, and returns its documented exit code.
pub fn main() -> ExitCode {
    let read = with_negative_numbers(Cli::command()).get_matches();
    let cli = match Cli::from_arg_matches(&read) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    end(match &cli.command {
        Command::Compare(options) => compare::run(options),
        Command::Bisect(options) => bisect::run(options),
        Command::Load(options) => load::run(options),
        Command::Init(options) => init::run(options),
        Command::Look(options) => look_client::run(options),
    })
}
