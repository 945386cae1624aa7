//! Most of the time goes to a wait that is no fault by itself: whoever asks why has to go on there.

use ecosystem::WaitKind;

use crate::evidence::Evidence;
use crate::finding::{Finding, Level, Words};
use crate::thresholds::{AT_WORK, LEAST_MS, POOL_WAIT};
use crate::waiting::Waiting;

pub(crate) fn look(evidence: &Evidence) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some(requests) = &evidence.requests else {
        return findings;
    };
    for waiting in Waiting::all(evidence) {
        let is_work = matches!(waiting.kind(), WaitKind::Running | WaitKind::Ready);
        let is_short = !is_work && waiting.ms.is_some_and(|ms| ms < LEAST_MS);
        let is_little = is_short || waiting.in_flight < AT_WORK;
        if !is_inside(waiting.kind()) || !waiting.is_much() || is_little {
            continue;
        }
        let mut seen = waiting.seen(requests);
        if is_work && let Some(places) = at_work(evidence) {
            seen = format!("{seen} Threads that run requests are at {places}.");
        }
        let (mut cause, mut fix) = (waiting.wait.cause.to_owned(), waiting.wait.fix.to_owned());
        if waiting.kind() == WaitKind::BlockingPool && has_free_threads(evidence) {
            seen += " Jobs found a free thread at once.";
            "The job itself takes that long.".clone_into(&mut cause);
            "Look at what the job does; the blocking pool has room.".clone_into(&mut fix);
        }
        let words = Words {
            headline: waiting.headline(),
            seen,
            cause,
            fix,
        };
        let kind = waiting.kind().name();
        let weight = waiting.share_of_all / 10.0;
        let found = Finding::of(Level::Wait, kind, weight, "/debug/await", words);
        findings.push(found.at(waiting.place().anchor()));
    }
    findings
}

/// Lists where threads that run requests are most. Samples of the CPU time are many more than those of threads, which also
/// see where a thread is blocked.
fn at_work(evidence: &Evidence) -> Option<String> {
    let threads = evidence.threads.as_ref()?;
    match threads.at_work() {
        Some(places) => Some(places),
        None => evidence.cpu.as_ref()?.at_work(),
    }
}

/// Returns whether the heartbeat's jobs found a free thread of the blocking pool each time.
fn has_free_threads(evidence: &Evidence) -> bool {
    let mut is_free = !evidence.runtimes.is_empty();
    for runtime in &evidence.runtimes {
        is_free &= runtime.blocking_wait_worst.max(runtime.blocking_unanswered) < POOL_WAIT;
    }
    is_free
}

/// Returns whether such a wait goes on in this service, or in its database.
pub(crate) fn is_inside(kind: WaitKind) -> bool {
    use WaitKind::{Answer, AnswerOrStream, Body, Client, Network, NewConnection};
    !matches!(
        kind,
        Answer | AnswerOrStream | Body | Client | NewConnection | Network
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{both_sides, cpu_samples, evidence, of_threads, place, route};
    use crate::threads::Thread;
    use crate::threads::testing::{WORKER, runs};
    use crate::thresholds::{MUCH_OF_ALL, MUCH_OF_ROUTE};

    const LINE: &str = "shop::note (src/note.rs:7)";

    #[test]
    fn a_wait_inside_is_told_from_a_share_of_its_route() {
        both_sides(look, MUCH_OF_ROUTE, |share| {
            // A request takes 20 ms.
            evidence(
                &[route("GET /a", 2.0, 1000), route("GET /b", 100.0, 1000)],
                &[place("GET /a", &[LINE, "tokio::time::Sleep"], 2.0 * share)],
            )
        });
    }

    #[test]
    fn a_time_of_nothing_and_a_hundredth_of_a_cpu_are_no_news() {
        both_sides(look, LEAST_MS, |ms| {
            let route = route("GET /a", ms, 10_000);
            let receiver = [LINE, "tokio::sync::oneshot::Receiver"];
            evidence(&[route], &[place("GET /a", &receiver, ms)])
        });
        both_sides(look, AT_WORK, |in_flight| {
            let running = place("GET /a", &["(running)"], in_flight);
            evidence(&[route("GET /a", in_flight, 100)], &[running])
        });
    }

    #[test]
    fn a_job_that_found_a_free_thread_takes_that_long_itself() {
        let cause = |wait| {
            let leaf = "(waiting for the blocking pool: queued or running)";
            let places = [place("POST /login", &[LINE, leaf], 0.4)];
            let mut evidence = evidence(&[route("POST /login", 0.4, 10)], &places);
            evidence.runtimes = vec![crate::evidence::Runtime {
                blocking_wait_worst: wait,
                ..crate::evidence::Runtime::default()
            }];
            look(&evidence).remove(0).cause
        };
        assert_eq!(cause(POOL_WAIT / 2.0), "The job itself takes that long.");
        assert!(cause(POOL_WAIT).contains("long jobs fill the pool"));
    }

    #[test]
    fn it_is_told_if_all_routes_together_are_much_there() {
        let names: Vec<String> = (0..10).map(|n| format!("GET /{n}")).collect();
        both_sides(look, MUCH_OF_ALL, |share| {
            let routes: Vec<_> = names.iter().map(|name| route(name, 1.0, 100)).collect();
            let places: Vec<_> = names
                .iter()
                .map(|name| place(name, &[LINE, "tokio::task::JoinHandle"], share))
                .collect();
            evidence(&routes, &places)
        });
    }

    #[test]
    fn where_requests_run_is_told_by_the_cpu_time_if_few_samples_of_threads_show_it() {
        let mut evidence = evidence(
            &[route("GET /inbox", 0.4, 8000)],
            &[place("GET /inbox", &["(running)"], 0.3)],
        );
        let worker = Thread::of("tokio worker", vec![runs(2, &[WORKER, "shop::load"])]);
        evidence.threads = of_threads(vec![worker], 0.0).threads;
        let load = runs(90, &[WORKER, "shop::load", "tokio::fs::read"]);
        evidence.cpu = Some(std::sync::Arc::new(cpu_samples(vec![load])));
        let found = look(&evidence).remove(0);
        assert!(
            found.seen.contains("are at 100 % at shop::load"),
            "{found:?}"
        );
    }

    #[test]
    fn another_service_is_outside() {
        let answer = place("GET /a", &[LINE, "(waiting for the answer)"], 1.0);
        assert!(look(&evidence(&[route("GET /a", 1.0, 10)], &[answer])).is_empty());
    }
}
