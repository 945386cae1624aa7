//! `duel look`, alone.

use clap::Parser;
use look_client::Look;

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    look: Look,
}

fn main() -> std::process::ExitCode {
    terminal::exit::end(look_client::run(&Arguments::parse().look))
}
