//! What terminal programs around the engine share: exit codes and their sentences, whole files, git, Ctrl-C, numbers on
//! the command line, and a line that shows what happens.

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

pub use self::out::{lost, put, tell};
