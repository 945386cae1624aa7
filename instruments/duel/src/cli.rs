//! The command line.

mod access_log;
mod at_capacity;
mod bisect;
mod by_locust;
pub(crate) mod compare;
mod config;
mod find;
mod init;
pub(crate) mod load;
#[cfg(feature = "manual")]
mod manual;
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
    /// Write man pages, and completions for shells, into a folder
    #[cfg(feature = "manual")]
    #[command(hide = true)]
    Manual {
        /// The folder
        folder: std::path::PathBuf,
    },
}

/// Runs `duel`: reads the arguments, runs the command, and returns its documented exit code.
pub fn main() -> ExitCode {
    let mut command = with_negative_numbers(Cli::command());
    command.build();
    let arguments = match config::with_file(std::env::args_os().collect(), &command) {
        Ok(arguments) => arguments,
        Err(error) => return end(Err(error)),
    };
    let read = command.get_matches_from(arguments);
    let cli = match Cli::from_arg_matches(&read) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    end(match &cli.command {
        Command::Compare(options) if options.at_capacity.is_empty() => compare::run(options),
        Command::Compare(options) => at_capacity::run(options),
        Command::Bisect(options) => bisect::run(options),
        Command::Load(options) => load::run(options),
        Command::Init(options) => init::run(options),
        Command::Look(options) => look_client::run(options),
        #[cfg(feature = "manual")]
        Command::Manual { folder } => manual::run(folder, with_negative_numbers(Cli::command())),
    })
}

#[cfg(all(test, feature = "http2", feature = "tls"))]
mod tests {
    use std::path::Path;

    use super::*;

    /// `cargo workshop compare --help` prints this file, so that no help has to be compiled.
    #[test]
    fn the_help_of_compare_is_recorded() {
        let mut command = with_negative_numbers(Cli::command());
        command.build();
        let compare = command.find_subcommand_mut("compare").unwrap();
        let help = compare.render_long_help().to_string();
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("help/compare.txt");
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, &help).unwrap();
        }
        let recorded = std::fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(help, recorded, "UPDATE_EXPECT=1 writes {}", file.display());
    }

    #[test]
    fn clap_finds_nothing_wrong() {
        with_negative_numbers(Cli::command()).debug_assert();
    }
}
