//! Option for the format of a command's result.

use clap::{Args, ValueEnum};

/// The option that every command has that reports something.
#[derive(Debug, Clone, Copy, Args)]
pub struct Output {
    /// For people, or one JSON value on standard output
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub format: Format,
}

/// For whom the result is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Human,
    /// One JSON value
    Json,
}
