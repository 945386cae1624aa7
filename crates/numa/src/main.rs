//! `numa`, which `cargo workshop` starts for `--numa-nodes`: a service in an emulated machine.

use numa::{cli, commands};

fn main() -> std::process::ExitCode {
    terminal::exit::end(commands::run(cli::Cli::read()))
}
