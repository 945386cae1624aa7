//! Requests wait for permits that nobody has: they are taken without a guard, and one that is not given back is lost.

use ecosystem::{WaitKind, figures};

use super::table;
use crate::evidence::{Frame, Line, Requests};
use crate::facts::Facts;
use crate::finding::{Row, Sighting};
use crate::followed::Unheld;
use crate::thresholds::{A_HOLDER, FEWEST_BAD, MUCH_OF_ROUTE, TASKS_AT_ONCE};
use crate::waiting::Waiting;

/// Permits that are given back by hand, and lost with each request that is dropped before that.
pub(crate) struct LostPermits {
    waiting: Waiting,
    /// The line that gives them back.
    by: Line,
    /// Requests that were cut before their work was done.
    cut: u64,
    unheld: Unheld,
}

pub(crate) fn check(facts: &Facts<'_>) -> Vec<LostPermits> {
    let mut found = Vec::new();
    let (Some(tasks), Some(requests)) = (&facts.evidence.tasks, facts.requests) else {
        return found;
    };
    let cut = requests.cut();
    for waiting in facts.waits_of(WaitKind::Limit) {
        let (Some(line), Some(by)) = (waiting.line(), waiting.given_back_by_hand()) else {
            continue;
        };
        let is_told = cut >= FEWEST_BAD
            && waiting.share >= MUCH_OF_ROUTE
            && at_work(waiting, requests) >= A_HOLDER;
        if is_told
            && let Some(unheld) = Unheld::at(line, tasks)
            && unheld.at_once >= TASKS_AT_ONCE
        {
            found.push(LostPermits {
                waiting: waiting.clone(),
                by: by.clone(),
                cut,
                unheld,
            });
        }
    }
    found
}

/// Returns the number of requests at once that are past the wait and suspended, so that a snapshot shows what they hold.
fn at_work(waiting: &Waiting, requests: &Requests) -> f64 {
    let mut at_work = 0.0;
    for place in waiting.all_past(requests) {
        if !matches!(
            place.kind(),
            None | Some(WaitKind::Running | WaitKind::Ready)
        ) {
            at_work += place.in_flight;
        }
    }
    at_work
}

impl Sighting for LostPermits {
    fn row(&self) -> &'static Row {
        table::LOST_WITH_REQUESTS
    }

    fn places(&self) -> Vec<Frame> {
        let mut places = vec![self.waiting.anchor()];
        // What those with a permit wait for is told with this.
        let past = self.waiting.past.as_ref();
        places.extend(past.and_then(|past| past.line().cloned().map(Frame::Own)));
        places
    }

    fn headline(&self) -> String {
        format!(
            "{} No task keeps one as a guard: requests give permits back by hand at {}.",
            self.waiting.headline(),
            self.by
        )
    }

    fn seen(&self) -> String {
        format!(
            "{} {} requests were given up or cut before their work was done.",
            self.unheld.seen(),
            figures::count(self.cut as f64)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{Evidence, Release, Step, StepKind, Tasks, Way};
    use crate::finding::{Finding, Level};
    use crate::rules::{judge, told};
    use crate::testing::{both_sides, evidence, frames, place, route};

    fn look(evidence: &Evidence) -> Vec<Finding> {
        told(super::check(&Facts::of(evidence)))
    }

    const TAKE: &str = "shop::Renderer::take_slot (src/render.rs:39)";
    const ACQUIRE: [&str; 3] = [
        "shop::Renderer::render (src/render.rs:31)",
        TAKE,
        "tokio::sync::Semaphore::acquire",
    ];
    const ASK: [&str; 2] = [
        "shop::Renderer::render (src/render.rs:32)",
        "tokio::net::TcpStream::poll_read",
    ];
    const BY_HAND: [&str; 3] = [
        "shop::Renderer::render (src/render.rs:33)",
        "shop::Renderer::release_slot (src/render.rs:44)",
        "tokio::sync::batch_semaphore::Semaphore::add_permits_locked",
    ];

    fn way(seen: f64, holder: bool) -> Way {
        let step = |at: &str, kind| Step {
            at: Some(at.to_owned()),
            kind: StepKind::Of(kind),
            ..Step::default()
        };
        let mut steps = vec![step(TAKE, WaitKind::Limit)];
        if holder {
            steps.push(step(ASK[0], WaitKind::Network));
        }
        Way {
            seen,
            ends: 1,
            steps,
        }
    }

    /// Returns ten requests of which this share waits for permits that requests give back by `by`. In ten snapshots this
    /// number of tasks at once waits, and nobody has a permit.
    fn lost(share: f64, dropped: u64, at_once: f64, by: &[&str]) -> Evidence {
        let mut route = route("GET /page", 10.0, 300);
        route.dropped = dropped;
        let places = [
            place("GET /page", &ACQUIRE, 10.0 * share),
            place("GET /page", &ASK, 10.0 - 10.0 * share),
        ];
        let mut evidence = evidence(&[route], &places);
        evidence.requests.as_mut().unwrap().releases = vec![Release {
            route: "GET /page".to_owned(),
            frames: frames(&ACQUIRE),
            by: frames(by),
            share: 1.0,
            is_by_drop: Some(false),
            ..Release::default()
        }];
        evidence.tasks = Some(Tasks {
            snapshots: 10,
            ways: vec![way(at_once * 10.0, false)],
            ..Tasks::default()
        });
        evidence
    }

    /// Reported of a renderer whose clients gave up: it was said that all permits are lent.
    #[test]
    fn permits_that_dropped_requests_keep_are_told() {
        let found = judge(&Facts::of(&lost(0.9, 33, 8.0, &BY_HAND)));
        assert_eq!(found.len(), 1, "it is told once: {found:?}");
        assert_eq!((found[0].kind, found[0].level), ("stuck", Level::Fault));
        let headline = &found[0].headline;
        let end = format!("give permits back by hand at {}.", BY_HAND[1]);
        assert!(
            headline.contains(TAKE) && headline.ends_with(&end),
            "{headline}"
        );
        both_sides(look, MUCH_OF_ROUTE, |share| lost(share, 33, 8.0, &BY_HAND));
        both_sides(look, TASKS_AT_ONCE, |tasks| lost(0.9, 33, tasks, &BY_HAND));
        let told = |dropped| !look(&lost(0.9, dropped, 8.0, &BY_HAND)).is_empty();
        assert!(told(FEWEST_BAD) && !told(FEWEST_BAD - 1));
        let past = 1.0 - A_HOLDER / 10.0;
        assert!(look(&lost(past + 0.001, 33, 8.0, &BY_HAND)).is_empty());
        assert!(!look(&lost(past - 0.001, 33, 8.0, &BY_HAND)).is_empty());
    }

    #[test]
    fn a_guard_and_a_task_that_gives_permits_lose_none() {
        let mut held = lost(0.9, 33, 8.0, &BY_HAND);
        held.tasks.as_mut().unwrap().ways.push(way(5.0, true));
        assert!(look(&held).is_empty(), "a snapshot shows a holder");
        let own_drop = [
            BY_HAND[0],
            "shop::Slot::drop (src/render.rs:44)",
            BY_HAND[2],
        ];
        assert!(look(&lost(0.9, 33, 8.0, &own_drop)).is_empty());
        let mut guard = lost(0.9, 33, 8.0, &BY_HAND);
        guard.requests.as_mut().unwrap().releases[0].is_by_drop = Some(true);
        assert!(look(&guard).is_empty());
        let mut ticks = lost(0.9, 33, 8.0, &["shop::refill (src/rate.rs:9)"]);
        ticks.requests.as_mut().unwrap().releases[0].is_of_task = true;
        assert!(look(&ticks).is_empty(), "a bucket of tokens");
    }

    #[test]
    fn without_snapshots_both_causes_are_told() {
        let mut unseen = lost(0.9, 33, 8.0, &BY_HAND);
        unseen.tasks = None;
        let found = judge(&Facts::of(&unseen)).remove(0);
        assert_eq!(found.level, Level::Bound);
        assert!(found.cause.contains("available_permits()"), "{found:?}");
        // Evidence from before guards were noted.
        unseen.requests.as_mut().unwrap().releases[0].is_by_drop = None;
        let found = judge(&Facts::of(&unseen)).remove(0);
        assert_eq!(found.cause, "All permits are lent.");
    }
}
