//! The learner's edit beside the problem, under the load of the chapter's check.

use std::time::Duration;

use crate::claim::{EXERCISE, PROBLEM};
use crate::environment::quota::throttled_so_far;
use crate::grade::{Attempt, Observed, Trial};
use crate::load::Load;
use crate::proof::{Bench, Event, ProofError, throttled_since};
use crate::server::{self, Server, ServerError};

/// How long the problem may take for the one answer that tells what is right.
const FIRST_ANSWER: Duration = Duration::from_secs(10);

/// Runs problem and exercise. `data_seed` varies the data and with it the
/// right answer, which is the problem's: a typed-in answer is then a wrong one.
///
/// # Errors
///
/// When the problem's server or the generator fails, or on Ctrl-C. A failure
/// of the exercise is not an error: it is what the attempt tells.
pub fn run(bench: &Bench<'_>, data_seed: u64) -> Result<Attempt, ProofError> {
    let mut load = bench
        .setting(&bench.chapter.check.setting)?
        .load(&bench.chapter.exchange);
    let (problem, optimised) = {
        (bench.observer)(Event::Begins(1, 2, PROBLEM));
        let mut server = bench.start(PROBLEM, data_seed)?;
        load.exchange.answer = right_answer(&server, &load)?;
        let observed = observe(bench, &mut server, &load)?;
        (observed, server.is_optimised())
    };
    (bench.observer)(Event::Measured(
        PROBLEM,
        problem.outcome.requests_per_second,
    ));
    (bench.observer)(Event::Begins(2, 2, EXERCISE));
    let mut server = match bench.start(EXERCISE, data_seed) {
        Ok(server) => server,
        Err(ServerError::Ended { words, .. } | ServerError::Hangs { words, .. }) => {
            return Ok(Attempt::DoesNotStart { words });
        }
        Err(other) => return Err(other.into()),
    };
    let exercise = observe(bench, &mut server, &load)?;
    (bench.observer)(Event::Measured(
        EXERCISE,
        exercise.outcome.requests_per_second,
    ));
    Ok(Attempt::Ran(Box::new(Trial {
        exercise,
        problem,
        optimised,
    })))
}

/// What the problem, which is correct if slow, answers.
fn right_answer(server: &Server, load: &Load) -> Result<String, ProofError> {
    let path = &load.exchange.path;
    let body =
        server::get(server.service(), path, FIRST_ANSWER).map_err(|reason| ServerError::Admin {
            variant: PROBLEM.to_owned(),
            path: path.clone(),
            reason,
        })?;
    Ok(String::from_utf8_lossy(&body).into_owned())
}

fn observe(bench: &Bench<'_>, server: &mut Server, load: &Load) -> Result<Observed, ProofError> {
    let throttled = throttled_so_far();
    let outcome = bench.drive(server, load)?;
    // A server that ended under load has no counters any more.
    let metrics = server.metrics().unwrap_or_default();
    Ok(Observed {
        outcome,
        database_calls: metrics.count("database_calls_total"),
        mechanism: metrics.get(&bench.chapter.mechanism.metric),
        panics: server.panics(),
        ended: server.has_ended(),
        throttled_s: throttled_since(throttled),
    })
}
