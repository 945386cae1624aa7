//! The command line, as clap reads it.

use clap::{Args, Parser, Subcommand};
use terminal::arguments::number;
use terminal::output::{Format, Output};

/// The ticket shop in capstone/: the scores that it got so far
#[derive(Debug, Parser)]
#[command(name = "capstone", bin_name = "cargo workshop capstone")]
pub struct Cli {
    /// Output format.
    #[command(flatten)]
    pub output: Output,
    /// Command; without one, print the scores.
    #[command(subcommand)]
    pub command: Option<Command>,
}

impl Cli {
    /// Reads the process's arguments.
    pub fn read() -> Self {
        Self::parse()
    }
}

/// Command on the ticket shop.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Test the shop, send users to it, and give it a score
    Bench(Bench),
    /// The next hint
    Hint,
    /// Start over with the shop's database in capstone/data
    InitDb {
        /// A `PostgreSQL` server, whose schema `capstone` is made anew
        #[arg(long, value_name = "postgres://…")]
        database: Option<String>,
    },
    /// Put capstone/ back as it was shipped, and keep a copy of yours
    Reset {
        /// Put back the files of this commit [default: as it was shipped]
        #[arg(long, value_name = "COMMIT")]
        to: Option<String>,
    },
    /// List changed files that must stay as they were shipped
    Changes {
        /// Compare this commit, such as another player's branch [default: the files that lie here]
        commit: Option<String>,
    },
    /// Write the fingerprints of the shop's answers, for the users of the bench
    #[command(hide = true)]
    Fingerprints,
}

/// Options of a bench.
#[derive(Debug, Args)]
pub struct Bench {
    /// Seconds that count, after a warm-up
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = number(10_u64..=3600, "60"))]
    pub seconds: u64,
    /// Leave out the contract tests; such a score is not kept
    #[arg(long)]
    pub no_tests: bool,
    /// Compare with the shop of a commit, and say whether the difference is real; not kept either
    #[arg(long, value_name = "COMMIT")]
    pub against: Option<String>,
    /// A `PostgreSQL` server, whose schema `capstone` is overwritten; such a score is not kept
    #[arg(long, value_name = "postgres://…")]
    pub database: Option<String>,
    /// For people, or one JSON value on standard output
    #[arg(long, value_enum)]
    pub format: Option<Format>,
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::CommandFactory;

    use super::Cli;

    #[test]
    fn clap_finds_nothing_wrong() {
        Cli::command().debug_assert();
    }

    /// `cargo workshop capstone --help` prints these files, so that no help has to be compiled.
    #[test]
    fn the_help_is_recorded() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("help");
        let mut command = Cli::command();
        command.build();
        let mut all = vec![("capstone".to_owned(), command.render_long_help())];
        for one in command.get_subcommands_mut() {
            if !one.is_hide_set() && one.get_name() != "help" {
                all.push((one.get_name().to_owned(), one.render_long_help()));
            }
        }
        for (name, help) in all {
            let (file, help) = (folder.join(name).with_extension("txt"), help.to_string());
            if std::env::var_os("UPDATE_EXPECT").is_some() {
                std::fs::create_dir_all(&folder).unwrap();
                std::fs::write(&file, &help).unwrap();
            }
            let recorded = std::fs::read_to_string(&file).unwrap_or_default();
            assert_eq!(help, recorded, "UPDATE_EXPECT=1 writes {}", file.display());
        }
    }
}
