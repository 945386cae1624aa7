//! The learner's edit beside the problem, under the load of the chapter's check.

use std::path::Path;
use std::time::Duration;

use crate::analysis::grade::{Evidence, Grade, grade};
use crate::measurement::attempt::{Attempt, Trial, Wait};
use crate::measurement::chapter_file::ChapterFile;
use crate::measurement::claim::{PROBLEM, Role};
use crate::measurement::record::Purpose;

use crate::bench::contract;
use crate::bench::neighbours::Neighbours;
use crate::bench::rounds::{Bench, Ran, RunError, Step};
use crate::bench::server::{Server, ServerError};
use engine::event::Event;

/// Longest time for the problem's first answer, which is taken as the right one.
const FIRST_ANSWER: Duration = Duration::from_secs(10);

/// Grades `variant`, usually the exercise: it has to listen and to pass the contract tests in `contract`, then it runs
/// beside the problem under the check's load, and last come the tests that only a fix can pass.
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
    let seeded = Bench {
        data_seed,
        ..bench.clone()
    };
    let asked = asked(&seeded)?;
    let bench = Bench {
        chapter: &asked,
        ..seeded
    };
    let mut attempt = Attempt::Tested { tests: Vec::new() };
    let mut evidence = Evidence::Start;
    loop {
        let neighbours = Neighbours::watch();
        let gathered = match evidence {
            Evidence::Start => start(&bench, variant).map(|_| attempt),
            Evidence::Contract | Evidence::TestsOfAFix => {
                let of_a_fix = evidence == Evidence::TestsOfAFix;
                contract::run(contract, variant, of_a_fix, bench.interrupt)
                    .map(|tested| attempt.tested(tested))
                    .map_err(|error| RunError::of_contract(&error))
            }
            Evidence::Load | Evidence::LoadAgain => load(&bench, variant, evidence, attempt),
        };
        attempt = gathered.or_else(|error| unstarted(error, variant, neighbours.share()))?;
        let grade = grade(chapter, &attempt);
        match grade.wants_after(evidence) {
            Some(next) => evidence = next,
            None => return Ok(grade),
        }
    }
}

/// Returns the chapter as a check asks it: with loads that last as long as a grade needs, and with the right answer to
/// this seed's data. The problem gives it, which is slow but correct.
fn asked(bench: &Bench<'_>) -> Result<ChapterFile, RunError> {
    let mut asked = bench.chapter.clone();
    if let Some(duration_s) = asked.check.duration_s {
        for scenario in asked.scenarios.values_mut() {
            scenario.duration_s = duration_s;
        }
    }
    let exchange = &mut asked.exchange;
    let server = start(bench, PROBLEM)?;
    let answer = engine::load::ask::send(server.service(), &(&*exchange).into(), FIRST_ANSWER)
        .map_err(|reason| ServerError::no(PROBLEM, &exchange.path, &reason))?;
    exchange.answer = String::from_utf8_lossy(&answer).into_owned();
    Ok(asked)
}

/// Starts a variant as the check asks it.
fn start(bench: &Bench<'_>, variant: &str) -> Result<Server, RunError> {
    let scenario = bench.scenario(&bench.chapter.check.scenario)?;
    Ok(bench.start(variant, scenario)?)
}

/// Returns the attempt whose server did not come to listen; any other error stays one. Other programs used this share of
/// the machine's CPU time.
fn unstarted(
    error: RunError,
    edit: &str,
    elsewhere_share: Option<f64>,
) -> Result<Attempt, RunError> {
    match error {
        RunError::Server(ServerError::Ended {
            variant,
            status,
            stderr,
        }) if variant == edit => Ok(Attempt::EndsAtOnce { status, stderr }),
        RunError::Server(ServerError::Hangs {
            variant,
            said,
            is_idle,
        }) if variant == edit => Ok(Attempt::DoesNotListen {
            said,
            wait: Wait {
                elsewhere_share,
                is_idle,
            },
        }),
        other => Err(other),
    }
}

/// Plans the rounds of a check. The first two are those of problem and edit. The others count root causes apart, first
/// the edit's, then the problem's.
fn plan<'a>(bench: &Bench<'a>, variant: &'a str, evidence: Evidence) -> Vec<Step<'a>> {
    let chapter = bench.chapter;
    let check = chapter.check.scenario.as_str();
    let step = |purpose, variant, scenario| Step {
        purpose,
        variant,
        scenario,
        number: 0,
    };
    let mut plan = vec![
        step(Purpose::Claim, PROBLEM, check),
        step(Purpose::Claim, variant, check),
    ];
    if evidence == Evidence::LoadAgain {
        plan.reverse();
        return plan;
    }
    for claim in chapter.claims.of(Role::RootCause) {
        let scenario = claim.scenario();
        if plan[2..].iter().any(|step| step.scenario == scenario) {
            continue;
        }
        let by_the_same_build = claim.features.is_empty() || bench.counted.is_none();
        if scenario == check && by_the_same_build {
            continue;
        }
        let is_own = !claim.features.is_empty() || scenario != chapter.claims.effect().scenario();
        if !is_own || !claim.is_checked() {
            continue;
        }
        plan.push(step(Purpose::RootCause, variant, scenario));
        if variant != PROBLEM {
            plan.push(step(Purpose::RootCause, PROBLEM, scenario));
        }
    }
    plan
}

/// Runs the planned rounds, one after the other, and adds them to the attempt.
fn load(
    bench: &Bench<'_>,
    variant: &str,
    evidence: Evidence,
    before: Attempt,
) -> Result<Attempt, RunError> {
    let mut rounds: Vec<Ran> = Vec::new();
    for step in plan(bench, variant, evidence) {
        if is_needless(bench.chapter, &step, &rounds) {
            continue;
        }
        let is_shown = step.purpose == Purpose::Claim;
        if is_shown {
            (bench.observer)(Event::Begins(rounds.len() + 1, 2, step.variant));
        }
        let ran = bench.run(&step)?;
        if is_shown {
            let per_second = ran.observed.round.outcome.requests_per_second;
            (bench.observer)(Event::Measured(step.variant, per_second));
        }
        rounds.push(ran);
    }
    let mut counted = Vec::new();
    for ran in rounds.drain(2..) {
        counted.push(ran.observed.round);
    }
    if evidence == Evidence::LoadAgain {
        rounds.reverse();
    }
    let (Some(exercise), Some(problem)) = (rounds.pop(), rounds.pop()) else {
        unreachable!("a plan begins with problem and edit");
    };
    let tests = match before {
        Attempt::Tested { tests } => tests,
        Attempt::Ran(before) => {
            counted = before.counted;
            before.tests
        }
        Attempt::EndsAtOnce { .. } | Attempt::DoesNotListen { .. } => return Ok(before),
    };
    Ok(Attempt::Ran(Box::new(Trial {
        tests,
        optimised: problem.optimised,
        exercise: exercise.observed,
        problem: problem.observed,
        counted,
    })))
}

/// Returns whether a count would say nothing new: the edit ended under load, or has the count of a fix, so that the
/// problem's is not shown.
fn is_needless(chapter: &ChapterFile, step: &Step<'_>, before: &[Ran]) -> bool {
    let ([_, edit, ..], Some(last)) = (before, before.last()) else {
        return false;
    };
    let is_compared = step.variant == PROBLEM && last.observed.round.variant != PROBLEM;
    step.purpose == Purpose::RootCause
        && (edit.observed.ended.is_some()
            || is_compared && !last.observed.round.misses_a_bound(chapter))
}
