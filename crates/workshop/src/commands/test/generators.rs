//! k6 and Locust: their scripts, their exit codes, and whether all three generators agree.

use std::path::Path;
use std::time::Duration;

use evidence::agreement::{self, MEDIAN_WITHIN, THROUGHPUT_WITHIN};
use evidence::claim::PROBLEM;
use evidence::interrupt::Interrupt;
use evidence::outcome::{GeneratorKind, MISSED};
use evidence::proof::{Bench, Placement};
use evidence::record::Round;
use evidence::server::{Launch, Server};

use super::check::{Check, Failure, Need, failed};
use super::claims::lacks_regions;
use super::context::Context;
use crate::chapters::Chapter;
use crate::exit::Problem;
use crate::measured::Generators;

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
/// Long enough for a rate within some per cent.
const ON_THE_SOLUTION: Duration = Duration::from_secs(12);
/// Looks at the solution that must not all fail.
const ATTEMPTS: u32 = 3;

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
    let refused = |error| Problem::of_generators(error, context.interrupt);
    let on = |variant| agreement::scripts(&bench, &external, variant, ON_THE_PROBLEM);
    let problem = on(PROBLEM).map_err(refused)?;
    // On one memory region both are equally fast: users see no difference.
    let of_problem = if lacks_regions(chapter)? { 0 } else { MISSED };
    end_with(context, &problem, of_problem)?;
    let mut wrong = None;
    // What slows the machine slows all three, but not in the same requests: where it changes its
    // pace in mid-look, their medians fall on either side.
    for attempt in 1..=ATTEMPTS {
        let rounds = agreement::measure(&bench, &external, ON_THE_SOLUTION).map_err(refused)?;
        end_with(context, &rounds, 0)?;
        let compared = agreement::compare(&rounds);
        context.note(&format!("attempt {attempt}: {compared:#?}"))?;
        wrong = compared.into_iter().find(|one| !one.agrees);
        if wrong.is_none() {
            return Ok(());
        }
    }
    failed(format!(
        "{ATTEMPTS} times on the solution of {}: a generator differs from the embedded one by more than {:.0} % \
         of throughput or {:.0} % of median latency or has faults: {wrong:?}",
        chapter.package(),
        THROUGHPUT_WITHIN * 100.0,
        MEDIAN_WITHIN * 100.0
    ))
}

/// Whether k6's and Locust's scripts ended with `code`.
fn end_with(context: &Context<'_>, rounds: &[Round], code: i32) -> Result<(), Failure> {
    for round in rounds {
        let (name, ended) = (round.outcome.generator.name, round.outcome.exit_code);
        context.note(&format!("{name} on the {}: {ended:?}", round.variant))?;
        if name != GeneratorKind::Embedded && ended != Some(code) {
            return failed(format!(
                "{name} on the {} ended with {ended:?} instead of {code}: {:#?}",
                round.variant, round.outcome
            ));
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
    let launch = Launch {
        program,
        variant,
        data_seed: 0,
        arguments: &[],
        processors: &[],
    };
    Server::start(&launch, interrupt).or_else(|error| failed(error.to_string()))
}
