//! The core of a variant alone: one `checksum` of so many rounds, no server around it.
//!
//! `cargo run -p chapter3 --example rounds -- problem 1000`
//!
//! For instruments that are too slow for a service under load, such as callgrind. Count the
//! instructions of N rounds and of 2N: the difference is what N rounds cost, and nothing else.

use chapter3::{exercise, parse_once, problem, solution};

fn main() -> Result<(), String> {
    let usage = "usage: rounds problem|exercise|solution|parse-once ROUNDS";
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [variant, rounds] = arguments.as_slice() else {
        return Err(usage.to_owned());
    };
    let rounds = rounds.parse().map_err(|_| usage.to_owned())?;
    let checksum = match variant.as_str() {
        "problem" => problem::checksum,
        "exercise" => exercise::checksum,
        "solution" => solution::checksum,
        "parse-once" => parse_once::checksum,
        _ => return Err(usage.to_owned()),
    };

    let ids = ["1", "2", "3"].map(str::to_owned);
    println!("{}", checksum(&ids, rounds));
    Ok(())
}
