//! Common parts of the terminal programs around the engine: exit codes and their messages, files that are written whole or
//! not at all, git, Ctrl-C, values on the command line, and the display of progress.

#[macro_use]
mod out;

pub mod arguments;
pub mod ctrl_c;
pub mod exit;
pub mod files;
pub mod git;
pub mod json;
pub mod outcome;
pub mod output;
pub mod progress;
pub mod testing;

pub use self::out::{Tone, coloured, lost, put, tell};
