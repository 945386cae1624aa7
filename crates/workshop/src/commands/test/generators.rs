//! k6 and Locust: their scripts, their exit codes, and whether all three generators agree.

use evidence::agreement::{self, MEDIAN_WITHIN, THROUGHPUT_WITHIN};
use evidence::interrupt::Interrupt;
use evidence::outcome::{MISSED, Outcome};
use evidence::server::{Launch, Server};

use super::check::{Check, Failure, Need, failed};
use super::context::Context;

pub(super) const SCRIPTS: Check = Check {
    name: "scripts",
    about: "k6 and Locust, with two workers too, tell faults and wrong answers from a cure",
    needs: &[Need::K6, Need::Locust],
    stands_alone: true,
    run: |context| {
        context.run(
            context
                .cargo(&["test", "--package", "evidence", "--test", "generator_tools"])
                // They wait more than they work.
                .args(["--", "--ignored", "--test-threads", "4"])
                .env("K6", context.tools.k6())
                .env("LOCUST", context.tools.in_venv("locust")),
        )
    },
};

pub(super) const GENERATORS: Check = Check {
    name: "generators",
    about: "every chapter's scripts fail on its problem and pass on its solution, where all three generators agree",
    needs: &[Need::K6, Need::Locust],
    stands_alone: true,
    run: |context| {
        context.chapters.iter().try_for_each(|chapter| {
            fail_on_the_problem(context, chapter.number)?;
            agree_on_the_solution(context, chapter.number)
        })
    },
};

fn fail_on_the_problem(context: &Context<'_>, chapter: u32) -> Result<(), Failure> {
    for with in ["k6", "locust"] {
        let code = outcome(context, chapter, "problem", with, "6")?.exit_code;
        if code != Some(MISSED) {
            return failed(format!(
                "{with} on the problem of chapter {chapter} ended with {code:?} instead of {MISSED}"
            ));
        }
    }
    Ok(())
}

/// At a load that saturates none of them.
fn agree_on_the_solution(context: &Context<'_>, chapter: u32) -> Result<(), Failure> {
    let Some(first) = disagreement(context, chapter)? else {
        return Ok(());
    };
    // They run one after the other. A neighbour who takes the processor for some seconds slows
    // one of them, and a service that computes shows it.
    context.note(&format!("{first}; once more"))?;
    disagreement(context, chapter)?.map_or(Ok(()), |second| {
        failed(format!(
            "twice on the solution of chapter {chapter}: {first}; {second}"
        ))
    })
}

/// What is wrong with the generators on a chapter's solution, if anything is.
fn disagreement(context: &Context<'_>, chapter: u32) -> Result<Option<String>, Failure> {
    let mut outcomes = Vec::new();
    for with in ["embedded", "k6", "locust"] {
        let outcome = outcome(context, chapter, "solution", with, "10")?;
        if let Some(code @ 1..) = outcome.exit_code {
            return Ok(Some(format!("{with} ended with {code} instead of 0")));
        }
        outcomes.push(outcome);
    }
    let compared = agreement::compare_outcomes(&outcomes);
    context.note(&format!("{compared:#?}"))?;
    let other = compared.into_iter().find(|one| !one.agrees);
    Ok(other.map(|other| {
        format!(
            "{} differs from the embedded generator by more than {:.0} % of throughput or {:.0} % \
             of median latency, or has faults: {other:?}",
            agreement::name(other.generator),
            THROUGHPUT_WITHIN * 100.0,
            MEDIAN_WITHIN * 100.0
        )
    }))
}

/// What a generator saw of a variant under its chapter's load, and its script's exit code.
fn outcome(
    context: &Context<'_>,
    chapter: u32,
    variant: &str,
    with: &str,
    seconds: &str,
) -> Result<Outcome, Failure> {
    let number = chapter.to_string();
    let mut load = context.own(&["load", &number, "--variant", variant, "--with", with]);
    let (_, said) = context.output(load.args(["--seconds", seconds, "--format", "json"]))?;
    serde_json::from_str(&said).or_else(|error| {
        failed(format!(
            "`load --with {with}` printed something else: {error}"
        ))
    })
}

/// A chapter's server on all processors, without arguments.
pub(super) fn start(
    program: &std::path::Path,
    variant: &str,
    interrupt: &Interrupt,
) -> Result<Server, Failure> {
    let launch = Launch {
        program,
        variant,
        data_seed: 0,
        arguments: &[],
        processors: &[],
    };
    Server::start(&launch, interrupt).or_else(|error| failed(error.to_string()))
}
