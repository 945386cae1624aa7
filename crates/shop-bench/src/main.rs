//! `shop-bench`, which `cargo workshop capstone …` starts: scores the ticket shop in `capstone/`.

use shop_bench::{cli, commands};

fn main() -> std::process::ExitCode {
    terminal::exit::end(commands::run(cli::Cli::read()))
}
