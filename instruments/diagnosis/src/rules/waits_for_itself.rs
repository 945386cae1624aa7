//! Requests wait for each other, or for what nobody gives back: nothing of a route finishes.

use ecosystem::{WaitKind, figures};

use crate::evidence::{Evidence, Place, Requests};
use crate::finding::{Finding, Words};
use crate::thresholds::{
    A_HOLDER, ALL_OF_ROUTE, MUCH_OF_ROUTE, QUEUE, STANDSTILL, STUCK_WEIGHT, WAITERS_HOLD_WEIGHT,
};
use crate::waiting::{Waiting, is_of_holders, parts};

pub(crate) fn look(evidence: &Evidence) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    let Some(requests) = &evidence.requests else {
        return findings;
    };
    for waiting in Waiting::all(evidence) {
        if !is_stuck(&waiting, requests) {
            continue;
        }
        let finding = match held_and_awaited(&waiting, requests) {
            Some((held, awaited)) => wait_for_each_other(&waiting, requests, held, awaited)
                .at(held)
                .at(awaited),
            None => stuck(&waiting, requests, evidence),
        };
        let finding = finding.at(waiting.place().anchor());
        // Both lines of a pair are places where requests wait.
        if !findings
            .iter()
            .any(|other| other.headline == finding.headline)
        {
            findings.push(finding);
        }
    }
    findings
}

/// Returns whether nothing of the routes goes on: their requests wait for holders alone, and none has finished for long.
fn is_stuck(waiting: &Waiting, requests: &Requests) -> bool {
    let of_queue = waiting.kind() == WaitKind::Queue;
    if !waiting.is_of_holders() && !of_queue {
        return false;
    }
    let Some(route) = requests.route(&waiting.place().route) else {
        return false;
    };
    let mut waits = 0.0;
    for place in &requests.places {
        let is_wait = match place.kind() {
            Some(WaitKind::Queue) => true,
            // Two tasks whose channels are full wait for each other with the answers that requests wait for.
            Some(WaitKind::Channel) => of_queue,
            Some(kind) => is_of_holders(kind),
            None => false,
        };
        if is_wait && place.route == route.name {
            waits += place.in_flight;
        }
    }
    let stands_still = route.finished == 0 || route.standstill >= STANDSTILL;
    let is_much = waiting.place().in_flight >= MUCH_OF_ROUTE * route.in_flight
        || held_and_awaited(waiting, requests).is_some();
    stands_still && is_much && route.in_flight >= QUEUE && waits >= ALL_OF_ROUTE * route.in_flight
}

/// A line that some requests have passed, which wait for the same thing further on: they may hold it, and others wait
/// for it there. The line that was passed comes first.
fn held_and_awaited<'a>(
    waiting: &'a Waiting,
    requests: &'a Requests,
) -> Option<(&'a str, &'a str)> {
    let here = waiting.place();
    for other in &requests.places {
        if other.kind() != Some(waiting.kind()) || leaf_type(other) != leaf_type(here) {
            continue;
        }
        for (first, second) in [(here, other), (other, here)] {
            if let Some(line) = passed(first, second) {
                return Some((line, second.line()?));
            }
        }
    }
    None
}

/// The type that is waited for, without its method: a lock to read and to write is one.
fn leaf_type(place: &Place) -> &str {
    let Some(leaf) = place.frames.last() else {
        return "";
    };
    match leaf.rsplit_once("::") {
        Some((of_type, _)) => of_type,
        None => leaf,
    }
}

/// The line of the innermost own function at `first`, if requests at `second` are in the same function further on.
fn passed<'a>(first: &'a Place, second: &Place) -> Option<&'a str> {
    let line = first.line()?;
    let (function, file, number) = parts(line)?;
    for frame in &second.frames {
        if let Some((other, other_file, further)) = parts(frame)
            && (other, other_file) == (function, file)
            && further > number
        {
            return Some(line);
        }
    }
    None
}

fn wait_for_each_other(
    waiting: &Waiting,
    requests: &Requests,
    held: &str,
    awaited: &str,
) -> Finding {
    let what = waiting.wait.in_words();
    let words = Words {
        headline: format!(
            "{}: requests wait for each other. They are past {held}, and are {what} again at {awaited}.",
            waiting.routes()
        ),
        seen: standstill(waiting, requests),
        cause: "A request takes a second one while it holds the first; others wait for the first, or stand between \
                the two."
            .to_owned(),
        fix: "Give the first back before the second is taken, or pass the first on and take no second.".to_owned(),
    };
    Finding::fault(
        "waits_for_itself",
        WAITERS_HOLD_WEIGHT,
        "/debug/await",
        words,
    )
}

fn stuck(waiting: &Waiting, requests: &Requests, evidence: &Evidence) -> Finding {
    if waiting.kind() == WaitKind::Queue {
        return not_received(waiting, requests, evidence);
    }
    // A holder that keeps it is past the wait all the time.
    if let Some(past) = waiting.past(requests)
        && past.in_flight >= A_HOLDER
    {
        return held_up(waiting, requests, past);
    }
    if let Some((line, _)) = waiting.holder(requests) {
        return held_by_task(waiting, requests, line);
    }
    let words = Words {
        headline: format!("{} Nobody is past this wait.", waiting.headline()),
        seen: format!("{} {}", standstill(waiting, requests), waiting.seen(requests)),
        cause: "What they wait for is never given back: it was forgotten on some way out, such as that of an error, or each \
                request takes a second one while it holds the first."
            .to_owned(),
        fix: "Look for who took it last, and for a second one that is taken while the first is held.".to_owned(),
    };
    Finding::fault("stuck", STUCK_WEIGHT, "/debug/await", words)
}

/// Requests whose holder waits for something else, which does not come.
fn held_up(waiting: &Waiting, requests: &Requests, past: &Place) -> Finding {
    let what = past.wait.map_or("something else", |wait| wait.thing());
    let at = past.line().unwrap_or("an unknown place");
    let words = Words {
        headline: format!(
            "{} Its holder waits for {} at {at}.",
            waiting.headline(),
            what
        ),
        seen: format!(
            "{} {}",
            standstill(waiting, requests),
            waiting.seen(requests)
        ),
        cause: "The holder keeps it while it waits for somebody who is slow or gone, and all others wait for the holder."
            .to_owned(),
        fix: "Give it back before that wait, or do not wait there: `try_send`, and let go of whoever is too slow.".to_owned(),
    };
    Finding::fault("stuck", STUCK_WEIGHT, "/debug/await", words)
}

/// Requests whose holder is a task, which was seen to give it back now and then.
fn held_by_task(waiting: &Waiting, requests: &Requests, line: &str) -> Finding {
    let words = Words {
        headline: format!(
            "{} A task that is no request holds it for long, and gives it back at {line}.",
            waiting.headline()
        ),
        seen: format!(
            "{} No request is past this wait. {}",
            standstill(waiting, requests),
            waiting.seen(requests)
        ),
        cause: "The task keeps it while it awaits something else: a slow client, a full channel or a call.".to_owned(),
        fix: "Give it back before that task awaits anything else: copy what is needed out of it first.".to_owned(),
    };
    Finding::fault("stuck", STUCK_WEIGHT, "/debug/await", words)
}

/// A channel from which its receiver takes nothing.
fn not_received(waiting: &Waiting, requests: &Requests, evidence: &Evidence) -> Finding {
    let others = evidence.other_tasks();
    let mut headline = format!("{} Its receiver takes nothing out.", waiting.headline());
    let mut seen = format!(
        "{} {}",
        standstill(waiting, requests),
        waiting.seen(requests)
    );
    if let Some(others) = others {
        headline = format!("{headline} It may be at {}.", others.most);
        seen = format!("{seen} Tasks that are no requests run {}.", others.places);
    }
    let words = Words {
        headline,
        seen,
        cause: "The receiver's task awaits something else before it takes the next message.".to_owned(),
        fix: "Let that task only receive and answer, and do what takes long in another one. To see what it awaits, put its \
              future into `debug_endpoints::watch(\"NAME\", …)` where it is spawned."
            .to_owned(),
    };
    Finding::fault("stuck", STUCK_WEIGHT, "/debug/await", words)
}

/// For how long nothing finished.
fn standstill(waiting: &Waiting, requests: &Requests) -> String {
    let (seconds, in_flight) = match requests.route(&waiting.place().route) {
        Some(route) => (route.standstill, route.in_flight),
        None => (0.0, 0.0),
    };
    format!(
        "No request of this route finished for {seconds:.1} s, with {} in flight.",
        figures::average(in_flight)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Release;
    use crate::testing::{both_sides, evidence, place, route};

    const FIRST: &str = "shop::balance (src/balance.rs:18)";
    const SECOND: &str = "shop::balance (src/balance.rs:21)";
    const RATE: &str = "shop::rate (src/balance.rs:12)";
    const READ: &str = "tokio::sync::RwLock::read";

    fn reread(standstill: f64, waits: f64) -> Evidence {
        let mut route = route("GET /balance", 6.0, 5);
        route.standstill = standstill;
        evidence(
            &[route],
            &[
                place("GET /balance", &[FIRST, READ], waits - 1.0),
                place("GET /balance", &[SECOND, RATE, READ], 1.0),
                place("GET /balance", &[SECOND, "(running)"], 6.0 - waits),
            ],
        )
    }

    #[test]
    fn requests_that_hold_what_they_wait_for_are_told_with_both_lines() {
        let found = look(&reread(8.0, 6.0));
        assert_eq!(found.len(), 1, "{found:?}");
        let headline = &found[0].headline;
        assert!(
            headline.contains("past shop::balance (src/balance.rs:18)")
                && headline.ends_with("again at shop::rate (src/balance.rs:12)."),
            "{headline}"
        );
        assert!(found[0].seen.contains("for 8.0 s"), "{found:?}");
    }

    #[test]
    fn a_route_stands_still_on_the_right_side_of_each_threshold() {
        both_sides(look, STANDSTILL, |seconds| reread(seconds, 6.0));
        both_sides(look, ALL_OF_ROUTE, |share| reread(8.0, 6.0 * share));
        both_sides(look, QUEUE, |in_flight| {
            let place = place(
                "GET /render",
                &[FIRST, "tokio::sync::Semaphore::acquire"],
                in_flight,
            );
            evidence(&[route("GET /render", in_flight, 0)], &[place])
        });
    }

    #[test]
    fn a_lock_that_a_task_gives_back_now_and_then_is_put_down_to_it() {
        let lock = ["shop::status (src/cams.rs:67)", "tokio::sync::Mutex::lock"];
        let mut route = route("GET /status", 14.0, 60);
        route.standstill = STANDSTILL;
        let mut evidence = evidence(&[route], &[place("GET /status", &lock, 14.0)]);
        let requests = evidence.requests.as_mut().unwrap();
        let ended = |by: &str, share, is_of_task| Release {
            route: "GET /status".to_owned(),
            frames: lock.map(str::to_owned).to_vec(),
            by: vec![by.to_owned()],
            share,
            is_of_task,
            ..Release::default()
        };
        // Each request that got it passes it on.
        let passed_on = ended("shop::status (src/cams.rs:69)", 0.93, false);
        requests.releases = vec![passed_on, ended("shop::watch (src/cams.rs:58)", 0.07, true)];
        let found = look(&evidence).remove(0);
        assert!(
            found.headline.contains(
                "no request holds it for long, and gives it back at shop::watch (src/cams.rs:58)"
            ),
            "{found:?}"
        );
        evidence.requests.as_mut().unwrap().releases.pop();
        let found = look(&evidence).remove(0);
        assert!(
            found.headline.contains("Nobody is past this wait"),
            "{found:?}"
        );
    }

    #[test]
    fn what_nobody_gives_back_is_stuck() {
        let acquire = place(
            "GET /render",
            &[FIRST, "tokio::sync::Semaphore::acquire"],
            8.0,
        );
        let found = look(&evidence(&[route("GET /render", 8.0, 0)], &[acquire]));
        assert_eq!(found[0].kind, "stuck");
    }

    #[test]
    fn a_holder_that_waits_for_somebody_else_is_told_and_so_is_a_receiver_that_takes_nothing() {
        let hub = "shop::broadcast (src/hub.rs:19)";
        let send = "shop::broadcast (src/hub.rs:25)";
        let mut of_route = route("sockets", 20.0, 0);
        of_route.is_part = true;
        let places = [
            place("sockets", &[hub, "tokio::sync::Mutex::lock"], 19.0),
            place("sockets", &[send, "tokio::sync::mpsc::Sender::send"], 1.0),
        ];
        let found = look(&evidence(&[of_route], &places)).remove(0);
        assert!(
            found.headline.ends_with(
                "Its holder waits for room in a channel at shop::broadcast (src/hub.rs:25)."
            ),
            "{found:?}"
        );
        let sends = [
            "shop::rate (src/rate.rs:53)",
            "tokio::sync::mpsc::Sender::send",
        ];
        let full = [place("GET /rate", &sends, 8.0)];
        let found = look(&evidence(&[route("GET /rate", 8.0, 0)], &full)).remove(0);
        assert!(
            found.headline.ends_with("Its receiver takes nothing out."),
            "{found:?}"
        );
    }

    #[test]
    fn a_holder_is_past_the_wait_all_the_time() {
        let told = |past: f64| {
            let lock = ["shop::read (src/read.rs:7)", "tokio::sync::Mutex::lock"];
            let send = [
                "shop::read (src/read.rs:9)",
                "tokio::sync::mpsc::Sender::send",
            ];
            let places = [place("GET /", &lock, 50.0), place("GET /", &send, past)];
            let found = look(&evidence(&[route("GET /", 50.0 + past, 0)], &places)).remove(0);
            found.headline.contains("Its holder waits")
        };
        assert!(told(A_HOLDER) && !told(A_HOLDER * 0.99));
    }

    #[test]
    fn a_second_connection_of_a_pool_is_told() {
        let pool = "(waiting for a connection of the pool)";
        let mut of_route = route("GET /get", 8.0, 3);
        of_route.standstill = 5.0;
        let places = [
            place("GET /get", &["shop::get (src/get.rs:20)", pool], 3.0),
            place("GET /get", &["shop::get (src/get.rs:22)", pool], 5.0),
        ];
        let found = look(&evidence(&[of_route], &places));
        assert_eq!(found[0].kind, "waits_for_itself", "{found:?}");
    }
}
