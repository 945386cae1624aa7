//! Most of the time goes to a wait that is no fault by itself: whoever asks why has to go on there.

use ecosystem::WaitKind;

use super::table;
use crate::evidence::{Evidence, Frame};
use crate::facts::Facts;
use crate::finding::{Advice, Row, Sighting};
use crate::threads::Places;
use crate::waiting::{Waiting, is_inside};

/// A wait inside of the service whose cause was not seen.
pub(crate) struct Unexplained {
    waiting: Waiting,
    /// Where threads that run requests are most, if the requests run.
    at_work: Option<Places>,
    /// True if it is a job on a blocking thread, and jobs find a free thread at once.
    is_job_itself: bool,
}

pub(crate) fn check(facts: &Facts<'_>) -> Vec<Unexplained> {
    let mut found = Vec::new();
    for waiting in &facts.waits {
        if !is_inside(waiting.kind()) || !waiting.is_much() || waiting.is_little() {
            continue;
        }
        let is_work = matches!(waiting.kind(), WaitKind::Running | WaitKind::Ready);
        found.push(Unexplained {
            at_work: is_work.then(|| at_work(facts.evidence)).flatten(),
            is_job_itself: waiting.kind() == WaitKind::BlockingPool
                && facts.has_free_blocking_threads,
            waiting: waiting.clone(),
        });
    }
    found
}

/// Lists where threads that run requests are most. Samples of the CPU time are many more than those of threads, which also
/// see where a thread is blocked.
fn at_work(evidence: &Evidence) -> Option<Places> {
    let threads = evidence.threads.as_ref()?;
    match threads.at_work() {
        Some(places) => Some(places),
        None => evidence.cpu.as_ref()?.at_work(),
    }
}

impl Sighting for Unexplained {
    fn row(&self) -> &'static Row {
        if self.is_job_itself {
            table::BLOCKING_JOB
        } else {
            table::WAIT
        }
    }

    fn kind(&self) -> &'static str {
        self.waiting.kind().name()
    }

    fn advice(&self) -> Option<Advice> {
        (!self.is_job_itself).then_some(Advice {
            cause: self.waiting.wait.cause,
            fix: self.waiting.wait.fix,
        })
    }

    fn share(&self) -> f64 {
        self.waiting.share_of_all / 10.0
    }

    fn places(&self) -> Vec<Frame> {
        vec![self.waiting.anchor()]
    }

    fn headline(&self) -> String {
        self.waiting.headline()
    }

    fn seen(&self) -> String {
        let seen = self.waiting.seen();
        match &self.at_work {
            Some(places) => format!("{seen} Threads that run requests are at {places}."),
            None if self.is_job_itself => format!("{seen} Jobs found a free thread at once."),
            None => seen,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Evidence;
    use crate::finding::Finding;
    use crate::rules::told;
    use crate::testing::{both_sides, cpu_samples, evidence, of_threads, place, route};
    use crate::threads::Thread;
    use crate::threads::testing::{WORKER, runs};
    use crate::thresholds::{AT_WORK, LEAST_MS, MUCH_OF_ALL, MUCH_OF_ROUTE, POOL_WAIT};

    fn look(evidence: &Evidence) -> Vec<Finding> {
        told(super::check(&Facts::of(evidence)))
    }

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
        assert_eq!(cause(POOL_WAIT / 2.0), "", "the job itself");
        assert!(cause(POOL_WAIT).contains("others fill the pool"));
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
