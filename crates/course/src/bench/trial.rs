//! The learner's edit beside the problem, under the load of the chapter's check.

use std::path::Path;
use std::time::Duration;

use crate::analysis::grade::{Grade, GradeKind, grade};
use crate::measurement::attempt::{Attempt, Observed, Trial};
use crate::measurement::chapter_file::ChapterFile;
use crate::measurement::claim::{PROBLEM, Role};
use crate::measurement::load::Exchange;
use crate::measurement::record::{Purpose, Round};
use engine::traffic::Traffic;

use crate::bench::contract;
use crate::bench::rounds::{Bench, RunError, Watch};
use crate::bench::server::{Server, ServerError};
use engine::event::Event;

/// Longest time for the problem's first answer, which is taken as the right one.
const FIRST_ANSWER: Duration = Duration::from_secs(10);

/// Runs the contract tests in `contract` on `variant`, usually the exercise. Then puts the problem and the
/// variant under the check's load, and grades the result. A variant that fails by its speed is measured once
/// more, before the problem instead of after it. So a machine that slowly changes does not decide.
///
/// `data_seed` varies the data and with them the right answer, which the problem gives.
///
/// # Errors
///
/// Fails if the problem's server, the tests or the generator cannot be run, or on Ctrl-C. A failure of the
/// exercise is not an error: the grade reports it.
pub fn run(
    bench: &Bench<'_>,
    contract: &Path,
    variant: &str,
    data_seed: u64,
) -> Result<Grade, RunError> {
    let chapter = bench.chapter;
    let scenario = bench.scenario(&chapter.check.scenario)?;
    let start = || match bench.start(variant, scenario, data_seed) {
        Err(ServerError::Ended { status, stderr, .. }) => {
            Ok(Err(Attempt::EndsAtOnce { status, stderr }))
        }
        Err(ServerError::Hangs { said, .. }) => Ok(Err(Attempt::DoesNotListen { said })),
        other => other.map(Ok),
    };
    let test = |of_a_fix| {
        let tested = contract::run(contract, variant, of_a_fix, bench.interrupt);
        tested.map_err(|error| RunError::of_contract(&error))
    };
    let tests = test(false)?;
    if tests.iter().any(|test| test.failure.is_some()) {
        // A server that does not listen fails all tests, and its own error is the better reason.
        let attempt = start()?.err();
        let attempt = attempt.unwrap_or(Attempt::BreaksContract { tests });
        return Ok(grade(chapter, &attempt));
    }
    let mut asked = chapter.clone();
    let (load, problem, optimised) = {
        let mut server = bench.start(PROBLEM, scenario, data_seed)?;
        asked.exchange.answer = right_answer(&server, &chapter.exchange)?;
        let load = asked.check_load_of(scenario);
        let observed = observe(bench, 1, PROBLEM, &mut server, &load)?;
        (load, observed, server.is_optimised())
    };
    let mut server = match start()? {
        Ok(server) => server,
        Err(attempt) => return Ok(grade(chapter, &attempt)),
    };
    let exercise = observe(bench, 2, variant, &mut server, &load)?;
    drop(server);
    let counted = if exercise.ended.is_some() {
        Vec::new()
    } else {
        counted(bench, variant, &asked, data_seed)?
    };
    let mut trial = Trial {
        tests,
        exercise,
        problem,
        counted,
        optimised,
    };
    let graded = |trial: &Trial| grade(chapter, &Attempt::Ran(Box::new(trial.clone())));
    let mut first = graded(&trial);
    if first.by_speed {
        let again = |number, variant| {
            let mut server = bench.start(variant, scenario, data_seed)?;
            observe(bench, number, variant, &mut server, &load)
        };
        trial.exercise = again(1, variant)?;
        trial.problem = again(2, PROBLEM)?;
        first = graded(&trial);
    }
    if first.kind != GradeKind::Passed {
        return Ok(first);
    }
    trial.tests.extend(test(true)?);
    Ok(graded(&trial))
}

/// Measures root causes that are counted in rounds of their own. The problem's are measured, too, if the
/// exercise misses a bound, so that the grade can compare the two.
fn counted(
    bench: &Bench<'_>,
    variant: &str,
    chapter: &ChapterFile,
    data_seed: u64,
) -> Result<Vec<Round>, RunError> {
    let mut rounds: Vec<Round> = Vec::new();
    for claim in chapter.claims.of(Role::RootCause) {
        let name = claim.scenario();
        if rounds.iter().any(|round| round.scenario == name) {
            continue;
        }
        let by_the_same_build = claim.features.is_empty() || bench.counted.is_none();
        if name == chapter.check.scenario && by_the_same_build {
            continue;
        }
        let is_own = !claim.features.is_empty() || name != chapter.claims.effect().scenario();
        if !is_own || !claim.is_checked() {
            continue;
        }
        let scenario = bench.scenario(name)?;
        let own = chapter.check_load_of(scenario);
        let count = |variant| {
            let server = bench.counting().start(variant, scenario, data_seed)?;
            watched(bench, &server, &own, Purpose::RootCause, (variant, name))
        };
        let round = count(variant)?;
        let misses = misses_a_bound(chapter, &round, scenario.users);
        rounds.push(round);
        if misses && variant != PROBLEM {
            rounds.push(count(PROBLEM)?);
        }
    }
    Ok(rounds)
}

/// Returns whether a root cause in the round's scenario misses the solution's bound.
fn misses_a_bound(chapter: &ChapterFile, round: &Round, users: u32) -> bool {
    for claim in chapter.claims.of(Role::RootCause) {
        if claim.scenario() != round.scenario || !claim.is_checked() {
            continue;
        }
        if let (Some(bound), Some(reading)) = (claim.solution, round.value(&claim.quantity))
            && !bound.holds(reading, users)
        {
            return true;
        }
    }
    false
}

/// Asks the problem, which is slow but correct, for the right answer.
fn right_answer(server: &Server, exchange: &Exchange) -> Result<String, RunError> {
    let body = engine::load::ask::send(server.service(), &exchange.into(), FIRST_ANSWER)
        .map_err(|reason| ServerError::no(PROBLEM, &exchange.path, &reason))?;
    Ok(String::from_utf8_lossy(&body).into_owned())
}

fn watched(
    bench: &Bench<'_>,
    server: &Server,
    load: &Traffic,
    purpose: Purpose,
    names: (&str, &str),
) -> Result<Round, RunError> {
    let watch = Watch::begin(server);
    let outcome = bench.drive(server, load)?;
    // A server that ended under load has no counters any more.
    let metrics = server.metrics().unwrap_or_default();
    Ok(watch.end(bench.chapter, purpose, names, outcome, &metrics))
}

fn observe(
    bench: &Bench<'_>,
    number: usize,
    variant: &str,
    server: &mut Server,
    load: &Traffic,
) -> Result<Observed, RunError> {
    (bench.observer)(Event::Begins(number, 2, variant));
    let names = (variant, bench.chapter.check.scenario.as_str());
    let round = watched(bench, server, load, Purpose::Claim, names)?;
    (bench.observer)(Event::Measured(variant, round.outcome.requests_per_second));
    Ok(Observed {
        round,
        panics: server.panics(),
        ended: server.has_ended().then(|| server.why_ended()),
    })
}
