//! The learner's edit beside the problem, under the load of the chapter's check.

use std::hint::black_box;
use std::time::Duration;

use analysis::grade::{Grade, GradeKind, grade};
use cpu_time::ThreadTime;
use measurement::attempt::{Attempt, Observed, Trial};
use measurement::claim::{EXERCISE, PROBLEM, Role};
use measurement::contract::Promise;
use measurement::load::Load;
use measurement::record::{Purpose, Round};

use crate::contract;
use crate::rounds::{Bench, Event, RunError, Watch};
use crate::server::{self, Server, ServerError};

/// How long the problem may take for the one answer that tells what is right.
const FIRST_ANSWER: Duration = Duration::from_secs(10);

/// Runs the problem and `variant`, which is the exercise as a rule, and grades what was seen. An
/// exercise that is slower than it may be is measured once more, before the problem instead of after
/// it: whatever else the machine did, it did to one of the two.
///
/// `data_seed` varies the data and with it the right answer, which is the problem's: a typed-in
/// answer is then a wrong one.
///
/// # Errors
///
/// When the problem's server or the generator fails, or on Ctrl-C. A failure
/// of the exercise is not an error: it is what the grade tells.
pub fn run(bench: &Bench<'_>, variant: &str, data_seed: u64) -> Result<Grade, RunError> {
    let chapter = bench.chapter;
    let scenario = bench.scenario(&chapter.check.scenario)?;
    let attempt = |promises: &[Promise]| {
        contract::attempt(promises, bench.program, variant, data_seed, bench.interrupt)
    };
    let promises = chapter.contract.iter().cloned();
    let (of_fix, of_all): (Vec<Promise>, Vec<Promise>) = promises.partition(|one| one.of_fix);
    let tried = match attempt(&of_all) {
        Ok(tried) => tried,
        Err(
            ServerError::Ended {
                variant, stderr, ..
            }
            | ServerError::Hangs { variant, stderr },
        ) if variant == EXERCISE => {
            return Ok(grade(chapter, &Attempt::DoesNotStart { stderr }));
        }
        Err(other) => return Err(other.into()),
    };
    if tried.iter().any(|promise| promise.broken.is_some()) {
        return Ok(grade(chapter, &Attempt::BreaksContract { tried }));
    }
    let least = || chapter.check.multiplications.map(multiplied);
    let before = least();
    let mut load = chapter.check_load_of(scenario);
    let (problem, optimised) = {
        let mut server = bench.start(PROBLEM, scenario, data_seed)?;
        load.exchange.answer = right_answer(&server, &load)?;
        let observed = observe(bench, 1, PROBLEM, &mut server, &load)?;
        (observed, server.is_optimised())
    };
    let mut server = bench.start(variant, scenario, data_seed)?;
    let exercise = observe(bench, 2, variant, &mut server, &load)?;
    drop(server);
    let counted = if exercise.ended.is_some() {
        Vec::new()
    } else {
        counted(bench, variant, &load, data_seed)?
    };
    let trial = Trial {
        tried,
        exercise,
        problem,
        counted,
        work_ms: before.zip(least()).map(|(before, after)| before.min(after)),
        optimised,
    };
    // What a fix alone is asked takes minutes of a service that is none.
    let graded = |mut trial: Trial| -> Result<Grade, RunError> {
        let so_far = grade(chapter, &Attempt::Ran(Box::new(trial.clone())));
        if so_far.kind != GradeKind::Passed || of_fix.is_empty() {
            return Ok(so_far);
        }
        trial.tried.extend(attempt(&of_fix)?);
        Ok(grade(chapter, &Attempt::Ran(Box::new(trial))))
    };
    let first = graded(trial.clone())?;
    if !first.by_speed {
        return Ok(first);
    }
    let again = |number, variant| {
        let mut server = bench.start(variant, scenario, data_seed)?;
        observe(bench, number, variant, &mut server, &load)
    };
    let exercise = again(1, variant)?;
    let problem = again(2, PROBLEM)?;
    let reversed = Trial {
        exercise,
        problem,
        ..trial
    };
    graded(reversed)
}

/// Milliseconds of CPU time that so many multiplications take at least, each of which waits for the one
/// before. A program that shares the core may make all tries slow but one, and a CPU may become faster
/// later: so the quickest counts, and a part of it.
fn multiplied(count: u32) -> f64 {
    const TRIES: u32 = 8;
    const PART: f64 = 0.7;

    let once = || {
        let began = ThreadTime::now();
        let mut hash = black_box(0xcbf2_9ce4_8422_2325_u64);
        for number in 0..u64::from(count) {
            hash = (hash ^ number).wrapping_mul(0x0100_0000_01b3);
        }
        black_box(hash);
        began.elapsed().as_secs_f64()
    };
    let least = (0..TRIES).map(|_| once()).fold(f64::INFINITY, f64::min);
    PART * 1e3 * least
}

/// The exercise's rounds for root causes that are counted in rounds of their own.
fn counted(
    bench: &Bench<'_>,
    variant: &str,
    load: &Load,
    data_seed: u64,
) -> Result<Vec<Round>, RunError> {
    let chapter = bench.chapter;
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
        let mut own = chapter.check_load_of(scenario);
        own.exchange.answer.clone_from(&load.exchange.answer);
        let server = bench.counting().start(variant, scenario, data_seed)?;
        let watch = Watch::begin(&server);
        let outcome = bench.drive(&server, &own)?;
        let metrics = server.metrics().unwrap_or_default();
        rounds.push(watch.end(
            chapter,
            Purpose::RootCause,
            (variant, name),
            outcome,
            &metrics,
        ));
    }
    Ok(rounds)
}

/// What the problem, which is correct if slow, answers.
fn right_answer(server: &Server, load: &Load) -> Result<String, RunError> {
    let exchange = &load.exchange;
    let body = server::send(server.service(), exchange, FIRST_ANSWER).map_err(|reason| {
        ServerError::Admin {
            variant: PROBLEM.to_owned(),
            path: exchange.path.clone(),
            reason,
        }
    })?;
    Ok(String::from_utf8_lossy(&body).into_owned())
}

fn observe(
    bench: &Bench<'_>,
    number: usize,
    variant: &str,
    server: &mut Server,
    load: &Load,
) -> Result<Observed, RunError> {
    let chapter = bench.chapter;
    (bench.observer)(Event::Begins(number, 2, variant));
    let watch = Watch::begin(server);
    let outcome = bench.drive(server, load)?;
    (bench.observer)(Event::Measured(variant, outcome.requests_per_second));
    // A server that ended under load has no counters any more.
    let metrics = server.metrics().unwrap_or_default();
    let names = (variant, chapter.check.scenario.as_str());
    Ok(Observed {
        round: watch.end(chapter, Purpose::Claim, names, outcome, &metrics),
        database_records: metrics.count("database_records_total"),
        calls: chapter
            .calls_metric()
            .and_then(|metric| metrics.count(metric)),
        panics: server.panics(),
        ended: server.has_ended().then(|| server.why_ended()),
    })
}
