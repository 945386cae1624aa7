//! Chapter 6: CPUs that the runtime does not see.
//! `cargo run -p chapter6 [-- VARIANT]`; the book says what each variant is for.

mod all_processors;
mod basic;
mod container;
mod exercise;
mod local_runtime;
mod problem;
mod service;
mod solution;
mod texts;
mod thread_isolated;
mod worker;

use clap::ValueEnum;
use lab::{Options, Uses};

use crate::texts::Texts;
use crate::worker::serve;

#[derive(Clone, Copy, ValueEnum)]
enum Variant {
    Problem,
    Exercise,
    Solution,
    Basic,
    ThreadIsolated,
    LocalRuntime,
    AllProcessors,
    ContainerProblem,
    ContainerExercise,
    ContainerSolution,
}

fn main() -> Result<(), lab::Error> {
    let (variant, options) = Options::read("chapter6", &[Uses::DataSet, Uses::Workers]);
    // Built before the listener opens, so that no client waits for it.
    let texts = Texts::build(&options)?;
    match variant {
        Variant::Problem => serve(options, &texts, problem::start),
        Variant::Exercise => serve(options, &texts, exercise::start),
        Variant::Basic => basic::serve(options, texts),
        Variant::ThreadIsolated => serve(options, &texts, thread_isolated::start),
        Variant::Solution => serve(options, &texts, solution::start),
        Variant::LocalRuntime => serve(options, &texts, local_runtime::start),
        Variant::AllProcessors => serve(options, &texts, all_processors::start),
        Variant::ContainerProblem => serve(options, &texts, container::problem::start),
        Variant::ContainerExercise => serve(options, &texts, container::exercise::start),
        Variant::ContainerSolution => serve(options, &texts, container::solution::start),
    }
}
