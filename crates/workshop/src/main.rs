//! The command line of the profiling workshop: `cargo workshop …`.
//!
//! The one crate that knows what a chapter's folder is called. It reads arguments, calls the crates
//! below it, prints, and turns what happened into an exit code ([`exit`]).

#[macro_use]
mod out;

mod arguments;
mod by_locust;
mod chapters;
mod cli;
mod commands;
mod compile;
mod ctrl_c;
mod exercise;
mod exit;
mod files;
mod git;
mod hints;
mod json;
mod measured;
mod progress_file;
mod requests;
mod scripts;
mod steps;
mod terminal;
mod tools;

fn main() -> std::process::ExitCode {
    let mut exit = commands::run(cli::Cli::read()).unwrap_or_else(|error| {
        eprintln!("error: {error}");
        error.exit
    });
    if let Some(error) = out::lost() {
        eprintln!(
            "error: standard output cannot be written to ({error}), and some of it is lost: free some \
             space, or send it elsewhere"
        );
        exit = exit.max(exit::Exit::Usage);
    }
    exit.code().into()
}
