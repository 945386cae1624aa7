//! The command line of the profiling workshop: `cargo workshop …`.
//!
//! Thin on purpose: it reads arguments, calls `evidence`, prints, and turns
//! what happened into an exit code ([`exit`]).

mod chapters;
mod cli;
mod commands;
mod compile;
mod ctrl_c;
mod exit;
mod files;
mod json;
mod terminal;

use clap::Parser;

fn main() -> std::process::ExitCode {
    match commands::run(cli::Cli::parse()) {
        Ok(exit) => exit.into(),
        Err(problem) => {
            eprintln!("error: {problem}");
            problem.exit.into()
        }
    }
}
