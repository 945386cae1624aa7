//! k6 and Locust: their scripts, their exit codes, and whether all three generators agree.

use evidence::agreement::{self, Compared, MEDIAN_WITHIN, THROUGHPUT_WITHIN};
use evidence::interrupt::Interrupt;
use evidence::outcome::Outcome;
use evidence::server::{Launch, Server};

use super::check::{Check, Failure, Need, failed};
use super::claims::lacks_regions;
use super::context::Context;
use crate::chapters::Chapter;

pub(super) const SCRIPTS: Check = Check {
    name: "scripts",
    about: "k6 and Locust, with two workers too, tell faults and wrong answers from a cure",
    needs: &[Need::K6, Need::Locust],
    stands_alone: true,
    run: |context| {
        context.run(
            context
                .cargo(&["test", "--package", "evidence", "--test", "generator_tools"])
                .args(["--", "--ignored", "--test-threads", "1"])
                .env("K6", context.tools.k6())
                .env("LOCUST", context.tools.in_venv("locust")),
        )
    },
};

pub(super) const EXIT_CODES: Check = Check {
    name: "exit-codes",
    about: "the same scripts fail on every chapter's problem, where this machine can show it, and pass on its solution",
    needs: &[Need::K6, Need::Locust],
    stands_alone: true,
    run: |context| {
        context
            .chapters
            .iter()
            .try_for_each(|chapter| exit_codes(context, chapter))
    },
};

/// What both tools end with when a threshold is missed.
const MISSED: i32 = 99;

fn exit_codes(context: &Context<'_>, chapter: &Chapter) -> Result<(), Failure> {
    let package = &chapter.package();
    let program = context.server(package)?;
    // On one memory region problem and solution are equally fast: users see no difference.
    let of_problem = if lacks_regions(chapter)? { 0 } else { MISSED };
    for (variant, expected) in [("problem", of_problem), ("solution", 0)] {
        let server = start(&program, variant, context.interrupt)?;
        let host = format!("http://{}", server.service());
        let mut k6 = context.command(context.tools.k6(), &["run", "--quiet", "-e", "DURATION=6"]);
        k6.args(["-e", &format!("HOST={host}"), &format!("k6/{package}.js")]);
        let mut locust = context.command(
            context.tools.in_venv("locust"),
            &["--headless", "--only-summary", "-r", "500"],
        );
        locust.args(["-f", &format!("locust/{package}.py")]);
        locust.args(["-t", "10s", "--host", &host]);
        for (name, tool) in [("k6", &mut k6), ("Locust", &mut locust)] {
            let code = context.code(tool)?;
            if code != Some(expected) {
                return failed(format!(
                    "{name} on the {variant} of {package} ended with {code:?} instead of {expected}"
                ));
            }
        }
    }
    Ok(())
}

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

pub(super) const AGREE: Check = Check {
    name: "agreement",
    about: "at a load that saturates none, all generators agree on throughput and median latency",
    needs: &[Need::K6, Need::Locust],
    stands_alone: true,
    run: agree,
};

fn agree(context: &Context<'_>) -> Result<(), Failure> {
    for chapter in &context.chapters {
        let mut disagrees = disagreement(context, chapter.number)?;
        if disagrees.is_some() {
            // The three run one after the other. A neighbour who takes the processor for some
            // seconds slows one of them, and a service that computes shows it.
            context.note("once more")?;
            disagrees = disagreement(context, chapter.number)?;
        }
        if let Some(other) = disagrees {
            return failed(format!(
                "twice on chapter {}'s solution {} differed from the embedded generator by more than \
                 {:.0} % of throughput or {:.0} % of median latency, or had faults: {other:?}",
                chapter.number,
                agreement::name(other.generator),
                THROUGHPUT_WITHIN * 100.0,
                MEDIAN_WITHIN * 100.0
            ));
        }
    }
    Ok(())
}

/// A generator that does not agree with the embedded one on a chapter's solution.
fn disagreement(context: &Context<'_>, chapter: u32) -> Result<Option<Compared>, Failure> {
    let outcomes = ["embedded", "k6", "locust"]
        .into_iter()
        .map(|with| outcome(context, chapter, with))
        .collect::<Result<Vec<_>, _>>()?;
    let compared = agreement::compare_outcomes(&outcomes);
    context.note(&format!("{compared:#?}"))?;
    Ok(compared.into_iter().find(|one| !one.agrees))
}

/// What a generator saw of a chapter's solution under its load.
fn outcome(context: &Context<'_>, chapter: u32, with: &str) -> Result<Outcome, Failure> {
    let number = chapter.to_string();
    let arguments = ["load", &number, "--variant", "solution", "--seconds", "10"];
    let mut load = context.own(&arguments);
    let said = context.output_of(load.args(["--with", with, "--format", "json"]))?;
    serde_json::from_str(&said).or_else(|error| {
        failed(format!(
            "`load --with {with}` printed something else: {error}"
        ))
    })
}
