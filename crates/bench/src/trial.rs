//! The learner's edit beside the problem, under the load of the chapter's check.

use std::time::Duration;

use crate::environment::quota::throttled_so_far;
use crate::rounds::{Bench, Event, RunError, throttled_since};
use crate::server::{self, Server, ServerError};
use measurement::attempt::{Attempt, Observed, Trial};
use measurement::claim::{EXERCISE, PROBLEM};
use measurement::load::Load;

/// How long the problem may take for the one answer that tells what is right.
const FIRST_ANSWER: Duration = Duration::from_secs(10);

/// Runs problem and exercise. `data_seed` varies the data and with it the
/// right answer, which is the problem's: a typed-in answer is then a wrong one.
///
/// # Errors
///
/// When the problem's server or the generator fails, or on Ctrl-C. A failure
/// of the exercise is not an error: it is what the attempt tells.
pub fn run(bench: &Bench<'_>, data_seed: u64) -> Result<Attempt, RunError> {
    let chapter = bench.chapter;
    let setting = bench.setting(&chapter.check.setting)?;
    let mut load = chapter.load_of(setting);
    if let Some(body) = load
        .writes
        .as_mut()
        .and_then(|writes| writes.exchange.body.as_mut())
        .filter(|_| chapter.check.vary_writes)
    {
        body.push_str(&data_seed.to_string());
    }
    let (problem, optimised) = {
        (bench.observer)(Event::Begins(1, 2, PROBLEM));
        let mut server = bench.start(PROBLEM, setting, data_seed)?;
        load.exchange.answer = right_answer(&server, &load)?;
        let observed = observe(bench, &mut server, &load)?;
        (observed, server.is_optimised())
    };
    (bench.observer)(Event::Measured(
        PROBLEM,
        problem.outcome.requests_per_second,
    ));
    (bench.observer)(Event::Begins(2, 2, EXERCISE));
    let mut server = match bench.start(EXERCISE, setting, data_seed) {
        Ok(server) => server,
        Err(ServerError::Ended { words, .. } | ServerError::Hangs { words, .. }) => {
            return Ok(Attempt::DoesNotStart { words });
        }
        Err(other) => return Err(other.into()),
    };
    let mut exercise = observe(bench, &mut server, &load)?;
    (bench.observer)(Event::Measured(
        EXERCISE,
        exercise.outcome.requests_per_second,
    ));
    if bench.counts_apart(&chapter.check.setting) && !exercise.ended {
        drop(server);
        exercise.mechanism = counted(bench, &load, data_seed)?;
    }
    Ok(Attempt::Ran(Box::new(Trial {
        exercise,
        problem,
        optimised,
    })))
}

/// The exercise's reading of a mechanism that is counted in a round of its own.
fn counted(bench: &Bench<'_>, load: &Load, data_seed: u64) -> Result<Option<f64>, RunError> {
    let chapter = bench.chapter;
    let setting = bench.setting(chapter.mechanism_setting())?;
    let mut own = chapter.load_of(setting);
    own.exchange.answer.clone_from(&load.exchange.answer);
    let server = bench.start_counted(EXERCISE, setting, data_seed)?;
    bench.drive(&server, &own)?;
    let metrics = server.metrics().unwrap_or_default();
    Ok(metrics.get(&chapter.mechanism.metric))
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

fn answer(server: &Server, path: &str) -> Result<String, String> {
    let body = server::get(server.service(), path, FIRST_ANSWER)?;
    Ok(String::from_utf8_lossy(&body).into_owned())
}

fn observe(bench: &Bench<'_>, server: &mut Server, load: &Load) -> Result<Observed, RunError> {
    let throttled = throttled_so_far();
    let outcome = bench.drive(server, load)?;
    let afterwards = bench
        .chapter
        .afterwards
        .as_ref()
        .map(|question| answer(server, &question.path).unwrap_or_else(|refusal| refusal));
    // A server that ended under load has no counters any more.
    let metrics = server.metrics().unwrap_or_default();
    Ok(Observed {
        outcome,
        afterwards,
        database_records: metrics.count("database_records_total"),
        calls: bench
            .chapter
            .calls_metric()
            .and_then(|metric| metrics.count(metric)),
        mechanism: metrics.get(&bench.chapter.mechanism.metric),
        limited: bench
            .chapter
            .check
            .limits
            .iter()
            .filter_map(|limit| Some((limit.metric.clone(), metrics.get(&limit.metric)?)))
            .collect(),
        panics: server.panics(),
        ended: server.has_ended(),
        throttled_s: throttled_since(throttled),
    })
}
