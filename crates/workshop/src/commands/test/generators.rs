//! k6 and Locust: their scripts, their exit codes, and whether all three generators agree.

use std::path::Path;
use std::time::Duration;

use analysis::agreement::{self, MEDIAN_WITHIN, THROUGHPUT_WITHIN};
use bench::placement::Placement;
use bench::rounds::Bench;
use bench::server::{Launch, Server};
use loadgen::interrupt::Interrupt;
use measurement::claim::PROBLEM;
use measurement::outcome::{GeneratorKind, MISSED};
use measurement::record::Round;

use super::check::{Check, Failure, Need, failed};
use super::claims::lacks_regions;
use super::context::Context;
use crate::chapters::Chapter;
use crate::exit::CliError;
use crate::measured::Generators;

pub(super) const SCRIPTS: Check = Check {
    name: "scripts",
    about: "k6 and Locust, with two workers too, tell faults and wrong answers from a cure",
    needs: &[Need::K6, Need::Locust],
    stands_alone: true,
    run: |context| {
        context.run(
            context
                .cargo(&["test", "--package", "bench", "--test", "generator_tools"])
                // They wait more than they work.
                .args(["--", "--ignored", "--test-threads", "4"])
                .env("K6", context.tools.k6())
                .env("LOCUST", context.tools.in_venv("locust")),
        )
    },
};

pub(super) const GENERATORS: Check = Check {
    name: "generators",
    about: "every chapter's scripts fail on its problem, where this machine can show it, and pass on its solution, where all three generators agree",
    needs: &[Need::K6, Need::Locust],
    stands_alone: true,
    run: |context| {
        context
            .chapters
            .iter()
            .try_for_each(|chapter| generators(context, chapter))
    },
};

/// Long enough for the thresholds to speak.
const ON_THE_PROBLEM: Duration = Duration::from_secs(6);
/// Of the time that the chapter's load takes: long enough for a rate within some per cent.
const ON_THE_SOLUTION: f64 = 0.6;
fn generators(context: &Context<'_>, chapter: &Chapter) -> Result<(), Failure> {
    let file = chapter.file()?;
    let program = context.server(&chapter.package())?;
    let placement = Placement::of_chapter(&file);
    let bench = Bench {
        program: &program,
        counted: None,
        arguments: &[],
        chapter: &file,
        placement: &placement,
        interrupt: context.interrupt,
        observer: &|_| {},
    };
    let tools = Generators::of(context.workshop, chapter);
    let external = tools.external();
    let refused = |error| CliError::of_generators(error, context.interrupt);
    // On one memory region both are equally fast: users see no difference.
    let of_problem = if lacks_regions(chapter)? { 0 } else { MISSED };
    in_some_look(context, || {
        let rounds = bench::agreement::scripts(&bench, &external, PROBLEM, ON_THE_PROBLEM);
        end_with(context, &rounds.map_err(refused)?, of_problem)
    })?;
    let on_the_solution = Duration::from_secs_f64(ON_THE_SOLUTION * file.load.duration_s);
    in_some_look(context, || {
        let rounds =
            bench::agreement::measure(&bench, &external, on_the_solution).map_err(refused)?;
        end_with(context, &rounds, 0)?;
        agree(context, &rounds)
    })
}

/// Looks of which one must succeed. Where a neighbour slows the machine in mid-look, the generators'
/// medians fall on either side of it, and an answer alone takes longer than it did.
fn in_some_look(
    context: &Context<'_>,
    mut look: impl FnMut() -> Result<(), Failure>,
) -> Result<(), Failure> {
    const LOOKS: u32 = 3;
    for _ in 1..LOOKS {
        match look() {
            Err(Failure::Because(reason)) => context.note(&format!("once more, since {reason}"))?,
            ended => return ended,
        }
    }
    look()
}

/// Whether each generator saw what the embedded one saw.
fn agree(context: &Context<'_>, rounds: &[Round]) -> Result<(), Failure> {
    let mut apart = Vec::new();
    for one in agreement::compare(rounds) {
        let per_cent = |off: Option<f64>| off.map_or(f64::NAN, |off| off * 100.0);
        let line = format!(
            "{}: {:.1} requests a second ({:+.1} %), median {:.2} ms ({:+.1} %)",
            agreement::name(one.generator),
            one.requests_per_second,
            per_cent(one.throughput_off),
            one.median_ms.unwrap_or(f64::NAN),
            per_cent(one.median_off),
        );
        context.note(&line)?;
        if !one.agrees {
            apart.push(line);
        }
    }
    if apart.is_empty() {
        return Ok(());
    }
    let (throughput, median) = (THROUGHPUT_WITHIN * 100.0, MEDIAN_WITHIN * 100.0);
    failed(format!(
        "a generator differs from the embedded one by more than {throughput:.0} % of throughput or \
         {median:.0} % of median latency, or has faults: {}",
        apart.join("; ")
    ))
}

/// Whether k6's and Locust's scripts ended with `code`.
fn end_with(context: &Context<'_>, rounds: &[Round], code: i32) -> Result<(), Failure> {
    for Round {
        variant, outcome, ..
    } in rounds
    {
        let generator = outcome.generator.name;
        if generator == GeneratorKind::Embedded {
            continue;
        }
        let line = format!(
            "{} on the {variant} ended with {}: {:.1} requests a second, median {:.2} ms, {} errors, \
             {} wrong answers",
            agreement::name(generator),
            outcome
                .exit_code
                .map_or("a signal".to_owned(), |code| format!("code {code}")),
            outcome.requests_per_second,
            outcome.latency.at(0.5).unwrap_or(f64::NAN),
            outcome.error_count(),
            outcome.wrong_answers,
        );
        context.note(&line)?;
        if outcome.exit_code != Some(code) {
            return failed(format!("{line}, and code {code} was expected"));
        }
    }
    Ok(())
}

/// A chapter's server on all processors, without arguments.
pub(super) fn start(
    program: &Path,
    variant: &str,
    interrupt: &Interrupt,
) -> Result<Server, Failure> {
    let launch = Launch::of(program, variant);
    Server::start(&launch, interrupt).or_else(|error| failed(error.to_string()))
}
