//! The command line, as clap reads it.

use std::path::PathBuf;

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
    /// Draw the scores of all teams whose files are in a folder, again at every change, until Ctrl-C
    Board {
        /// Folder of the files, into which index.html is written
        folder: PathBuf,
        /// Draw them once
        #[arg(long)]
        once: bool,
        /// Leave out scores that came more than this many minutes after the first one, to hide the last hour
        #[arg(long, value_name = "MINUTES", value_parser = number(0_u64..=10_000, "180"))]
        freeze_after: Option<u64>,
    },
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
        /// Compare this commit, such as a team's branch [default: the files that lie here]
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
    #[arg(long, value_name = "COMMIT", conflicts_with_all = ["team", "expect", "note"])]
    pub against: Option<String>,
    /// The score that you expect; the history says whether it was in the interval
    #[arg(long, value_name = "SCORE", value_parser = score)]
    pub expect: Option<f64>,
    /// Your change in a few words, for the history and the board
    #[arg(long, value_name = "TEXT")]
    pub note: Option<String>,
    /// Keep the score in NAME.json, too, for the board
    #[arg(long, value_name = "NAME", value_parser = crate::team::name, conflicts_with = "no_tests")]
    pub team: Option<String>,
    /// Folder of that file [default: the workshop's folder]
    #[arg(long, value_name = "FOLDER", requires = "team")]
    pub results: Option<PathBuf>,
    /// A `PostgreSQL` server, whose schema `capstone` is overwritten; such a score is not kept
    #[arg(long, value_name = "postgres://…", conflicts_with = "team")]
    pub database: Option<String>,
    /// For people, or one JSON value on standard output
    #[arg(long, value_enum)]
    pub format: Option<Format>,
}

fn score(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(score) if (0.0..1e9).contains(&score) => Ok(score),
        _ => Err("not a score, such as 20".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn clap_finds_nothing_wrong() {
        super::Cli::command().debug_assert();
    }
}
