//! Option for the format of a command's result.

use clap::{Args, ValueEnum};

/// Option of every command that reports something.
#[derive(Debug, Clone, Copy, Args)]
pub struct Output {
    /// For people, or one JSON value on standard output
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub format: Format,
}

/// Format of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Human,
    /// One JSON value
    Json,
}
