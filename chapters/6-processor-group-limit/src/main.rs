//! Chapter 6: processors that the runtime does not see.
//! `cargo run -p chapter6 [-- VARIANT]`; the book says what each variant is for.

mod acceptor;
mod basic;
mod exercise;
mod problem;
mod service;
mod solution;
mod texts;
mod thread_isolated;
mod worker;

use lab::Options;

use crate::texts::Texts;

#[rustfmt::skip]
const VARIANTS: &[&str] = &["problem", "exercise", "solution", "basic", "thread-isolated", "all-processors"];

fn main() -> Result<(), lab::Error> {
    let options = Options::read("chapter6", VARIANTS);
    // Before the listener opens: who can connect need not wait for the data set.
    let texts = Texts::build(&options)?;
    match options.variant() {
        "basic" => basic::serve(options, texts),
        "thread-isolated" => acceptor::serve(options, &texts, thread_isolated::start),
        "problem" => acceptor::serve(options, &texts, problem::start),
        "solution" | "all-processors" => acceptor::serve(options, &texts, solution::start),
        _ => acceptor::serve(options, &texts, exercise::start),
    }
}
