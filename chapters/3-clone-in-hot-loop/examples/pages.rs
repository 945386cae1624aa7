//! The core of a variant alone: the first page, so many times, and no server around it.
//!
//! `cargo run -p chapter3 --example pages -- problem 5`
//!
//! For instruments that are too slow for a service under load, such as callgrind. Count the
//! instructions of N pages and of 2N: the difference is what N pages cost, and nothing else.

use chapter3::{clients, exercise, problem, solution};

fn main() -> Result<(), String> {
    let usage = "usage: pages problem|exercise|solution PAGES";
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [variant, pages] = arguments.as_slice() else {
        return Err(usage.to_owned());
    };
    let pages: u32 = pages.parse().map_err(|_| usage.to_owned())?;
    let page = match variant.as_str() {
        "problem" => problem::page,
        "exercise" => exercise::page,
        "solution" => solution::page,
        _ => return Err(usage.to_owned()),
    };

    let clients = clients::known(0);
    for _ in 0..pages {
        println!("{}", page(&clients, 0));
    }
    Ok(())
}
