//! The promises of a chapter's contract, tried on a variant and on the problem beside it.

mod asking;
mod judging;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use loadgen::interrupt::Interrupt;
use measurement::claim::PROBLEM;
use measurement::contract::{Promise, Tried};
use measurement::metrics::Metrics;

use self::asking::{Answer, TIME_OUT, answered, asked, joined};
use self::judging::{Seen, fault};
use crate::server::{Client, Launch, Server, ServerError};

/// How often it is looked whether somebody pressed Ctrl-C.
const LOOKED_AT: Duration = Duration::from_millis(20);

/// Tries the promises on `variant`, all at the same time, since most of them wait. The problem does the
/// same beside it, and what it answers and counts is right; it does not where a fix alone is asked.
///
/// # Errors
///
/// When a server does not start.
pub fn attempt(
    promises: &[Promise],
    program: &Path,
    variant: &str,
    data_seed: u64,
    interrupt: &Interrupt,
) -> Result<Vec<Tried>, ServerError> {
    let seen = |promise: &Promise, variant| {
        let launch = Launch {
            data_seed: promise.data_seed.unwrap_or(data_seed),
            arguments: &promise.arguments,
            workers: promise.workers,
            ..Launch::of(program, variant)
        };
        let mut server = Server::start(&launch, interrupt)?;
        let seen = observe(promise, &mut server, interrupt);
        if interrupt.is_set() {
            return Err(ServerError::Interrupted);
        }
        Ok(seen)
    };
    let tried = |promise: &Promise| {
        let (right, own) = std::thread::scope(|scope| {
            let is_compared = !promise.of_fix;
            let problem = is_compared.then(|| scope.spawn(|| seen(promise, PROBLEM)));
            let own = seen(promise, variant);
            (problem.map(joined).transpose(), own)
        });
        let (right, own) = (right?, own?);
        Ok(Tried {
            name: promise.name.clone(),
            of_fix: promise.of_fix,
            broken: fault(promise, right.as_ref(), &own),
            panic: own.panic,
        })
    };
    std::thread::scope(|scope| {
        let tried = &tried;
        let all: Vec<_> = promises
            .iter()
            .map(|promise| scope.spawn(move || tried(promise)))
            .collect();
        all.into_iter().map(joined).collect()
    })
}

fn observe(promise: &Promise, server: &mut Server, interrupt: &Interrupt) -> Seen {
    let address = server.service();
    let alone = promise
        .cpu_of_one_at_least
        .and_then(|_| cost_alone(promise, server, interrupt));
    let before = alone.and_then(|_| server.metrics().ok());
    let answers = unless_interrupted(server, interrupt, || asked(promise, address));
    // A server that ended has none any more.
    let metrics = server.metrics().unwrap_or_default();
    let cost = before.and_then(|before| cost(&before, &metrics));
    Seen {
        answers,
        cpu_of_one: cost.zip(alone).map(|(cost, alone)| cost / alone),
        metrics,
        panic: server.panics().into_iter().next(),
        ended: server.has_ended().then(|| server.why_ended()),
    }
}

/// CPU time of an answer to somebody who asks alone. Whoever else uses the machine can only raise it,
/// so the lowest of some counts.
fn cost_alone(promise: &Promise, server: &Server, interrupt: &Interrupt) -> Option<f64> {
    const TRIES: u32 = 8;

    let client = Client::of(server.service(), TIME_OUT);
    let request = promise.requests.first()?;
    let one = |number| {
        let before = server.metrics().ok()?;
        let (_, answer) = answered(&client, request.numbered(number), 0);
        let is_answered = matches!(answer, Answer::Success(_)) && !interrupt.is_set();
        cost(&before, &server.metrics().ok()?).filter(|_| is_answered)
    };
    (0..TRIES).map_while(one).reduce(f64::min)
}

/// Seconds of CPU time for each request between two moments.
fn cost(before: &Metrics, after: &Metrics) -> Option<f64> {
    let between = |name| Some(after.get(name)? - before.get(name)?);
    Some(between("process_cpu_seconds")? / between("http_requests_total")?)
}

/// Ends the server on Ctrl-C, so that nobody waits for its answers any more.
fn unless_interrupted<T>(
    server: &mut Server,
    interrupt: &Interrupt,
    work: impl FnOnce() -> T,
) -> T {
    /// Tells the other thread of the end, also of a panic.
    struct Done<'a>(&'a AtomicBool);

    impl Drop for Done<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                if interrupt.is_set() {
                    server.kill();
                    return;
                }
                std::thread::sleep(LOOKED_AT);
            }
        });
        let _done = Done(&is_done);
        work()
    })
}
