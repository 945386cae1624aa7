//! The command line of the profiling workshop: `cargo workshop …`.
//!
//! The one crate that knows what a chapter's folder is called. It reads arguments, calls the crates
//! below it, prints, and turns what happened into an exit code ([`exit`]).

#[macro_use]
extern crate terminal;

mod arguments;
mod chapters;
mod cli;
mod commands;
mod compile;
mod emulator;
mod exercise;
mod exit;
mod hints;
mod keys;
mod measured;
mod prediction;
mod progress_file;
mod steps;
mod tools;

use children::program::Program;

fn main() -> std::process::ExitCode {
    children::program::is(Program {
        name: "cargo workshop".to_owned(),
        setup: Some("cargo workshop setup".to_owned()),
    });
    terminal::exit::end(commands::run(cli::Cli::read()))
}
