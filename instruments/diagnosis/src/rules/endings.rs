//! Requests that end badly: given up by their clients, cut by a time limit, or answered with an error of this service.

use ecosystem::figures::{self, count};
use ecosystem::{PartMeaning, WaitKind};

use crate::evidence::{Evidence, Place, Requests, Route};
use crate::finding::{Finding, Level, Words};
use crate::thresholds::{
    ASKED_AGAIN, DROPPED_HALF, DROPPED_MOST, FEWEST_BAD, GIVEN_UP_WEIGHT, SERVER_ERRORS,
    SERVER_ERRORS_WEIGHT,
};

/// Most requests are given up, and work goes on for nobody.
pub(crate) fn given_up(evidence: &Evidence) -> Vec<Finding> {
    let Some(requests) = &evidence.requests else {
        return Vec::new();
    };
    let cut = requests.dropped() + requests.answers().timed_out;
    let ended = requests.dropped() + requests.finished();
    let share = cut as f64 / ended.max(1) as f64;
    if cut < FEWEST_BAD || share < DROPPED_HALF {
        return Vec::new();
    }
    let mut seen = String::new();
    if let Some(place) = where_most_are(requests) {
        seen = format!("They were at {place}.");
    }
    let tasks = more_tasks(evidence, requests);
    if let Some(more) = &tasks {
        seen = format!("{seen} {more}");
    }
    if let Some(threads) = &evidence.threads
        && let Some(place) = threads.computing()
    {
        seen = format!("{seen} Threads still compute: {place}.");
    }
    let again = asked_again(evidence, ended).filter(|_| requests.dropped() == 0);
    let spawned = waits_for_spawned(requests).filter(|_| requests.dropped() > 0);
    let runs_on = tasks.is_some() || again.is_some() || spawned.is_some();
    let level = if share >= DROPPED_MOST || runs_on {
        Level::Fault
    } else {
        // Clients may have a limit of their own that is shorter than the work.
        Level::Bound
    };
    let begun_again = begun_again(requests).filter(|_| again.is_none());
    let words = if let Some(line) = begun_again {
        initialisation(requests, line, cut, ended, seen)
    } else if requests.dropped() == 0 {
        cut_by_limit(requests, cut, ended, seen, again)
    } else {
        let cause = if spawned.is_some() {
            "A spawned task runs on when its request is dropped. It works for a client who has left, and others wait behind \
             it."
        } else if level == Level::Fault {
            "Work for clients who have left goes on in a queue, a task or a thread; or the queue is longer than clients \
             wait, so each is served when it is about to leave."
        } else {
            "Clients wait for less time than most answers take."
        };
        let at = spawned.map(|line| format!(": they wait for a spawned task at {line}"));
        let at = at.unwrap_or_default();
        Words {
            headline: format!(
                "{} of {} requests were given up{}, before they had an answer{at}.",
                count(cut as f64),
                count(ended as f64),
                after(requests)
            ),
            seen,
            cause: cause.to_owned(),
            fix: "Bound the queue, and refuse at once (503) what cannot be answered in time. Then drop work whose request \
                  is gone: ask `is_closed()` of its reply channel before each job, or abort its task."
                .to_owned(),
        }
    };
    let words = Words {
        seen: words.seen.trim().to_owned(),
        ..words
    };
    let weight = GIVEN_UP_WEIGHT;
    vec![Finding::of(
        level,
        "given_up",
        weight,
        "/debug/await",
        words,
    )]
}

/// Returns the line at which most requests wait for a value that one of them makes, if that request is further inside: it is
/// cut as the others are, and what it has made of the value is lost.
fn begun_again(requests: &Requests) -> Option<&str> {
    for waits in requests.crowded(WaitKind::SingleFlight) {
        let Some(line) = waits.line() else { continue };
        let makes = |place: &Place| {
            let at = place.frames.iter().position(|frame| frame == line);
            place.kind() != Some(WaitKind::SingleFlight)
                && at.is_some_and(|at| at + 2 < place.frames.len())
        };
        if requests.places.iter().any(makes) {
            return Some(line);
        }
    }
    None
}

fn initialisation(requests: &Requests, line: &str, cut: u64, ended: u64, seen: String) -> Words {
    Words {
        headline: format!(
            "{} of {} requests were cut{}: the value at {line} is begun anew each time, and never made.",
            count(cut as f64),
            count(ended as f64),
            after(requests)
        ),
        seen,
        cause: "The request that makes the value is cut before it is done, and the next one begins from the start.".to_owned(),
        fix: "Make it in a spawned task and await that, or before the service takes requests.".to_owned(),
    }
}

/// Words for requests that a time limit of the service cut: their clients got an answer, which says so.
fn cut_by_limit(
    requests: &Requests,
    cut: u64,
    ended: u64,
    mut seen: String,
    again: Option<String>,
) -> Words {
    let mut headline = format!(
        "{} of {} requests were cut by a time limit (408 or 504)",
        count(cut as f64),
        count(ended as f64)
    );
    let mut cause = "What they wait for takes longer than the limit.";
    let mut fix = "Find out why it takes so long there, and refuse at once (503) what cannot be answered in time.";
    if let Some(again) = again {
        headline += ", and begin their calls again and again";
        let mut lines = requests.places.iter().filter_map(Place::line);
        if let Some(line) = lines.next() {
            headline = format!("{headline}, at {line}");
        }
        seen = format!("{seen} {again}");
        cause = "A loop makes the call anew before it has an answer: a retry, or a `select!` with a timer. A retry has a pause.";
        fix = "Bound the retries of all requests together; in a `select!`, make the future before the loop and poll it by `&mut`.";
    }
    Words {
        headline: format!("{headline}."),
        seen,
        cause: cause.to_owned(),
        fix: fix.to_owned(),
    }
}

/// Returns a sentence on connections, if several to one address were opened for each of the requests that ended.
fn asked_again(evidence: &Evidence, ended: u64) -> Option<String> {
    for peers in evidence.upstreams() {
        let for_each = (peers.opened + peers.ended) as f64 / ended as f64;
        if for_each >= ASKED_AGAIN {
            return Some(format!(
                "For each of them, at least {for_each:.1} connections to {} were opened: calls are given up and made again.",
                peers.address
            ));
        }
    }
    None
}

/// Tasks that become more than the requests in flight are: those of requests that are gone.
fn more_tasks(evidence: &Evidence, requests: &Requests) -> Option<String> {
    let tasks = evidence.memory.as_ref()?.tasks;
    #[allow(clippy::cast_possible_truncation)] // Requests in flight are few.
    let in_flight = requests.in_flight.ceil() as i64;
    if !tasks.rises_by_more_than(in_flight) {
        return None;
    }
    Some(format!(
        "The tasks became more, from {} to {}, with {in_flight} requests in flight.",
        tasks.from, tasks.to
    ))
}

/// The time after which requests were dropped, of the route with most of them: ` after 250 ms`.
pub(crate) fn after(requests: &Requests) -> String {
    if let Some(route) = requests.whole().max_by_key(|route| route.dropped)
        && let Some(ms) = route.dropped_after_ms
    {
        return format!(" after {} on average", figures::duration(ms));
    }
    String::new()
}

/// The line where most requests are.
fn where_most_are(requests: &Requests) -> Option<String> {
    let place = requests
        .places
        .iter()
        .find(|place| place.line().is_some())?;
    Some(place.frames.join(" > "))
}

/// Returns the line at which most requests wait for a task, which runs on when its request is dropped.
fn waits_for_spawned(requests: &Requests) -> Option<&str> {
    for place in requests.crowded(WaitKind::Task) {
        // A `JoinSet` ends its tasks when it is dropped, and so does a handle of tokio-util.
        let ends = place
            .frames
            .iter()
            .any(|frame| PartMeaning::EndsTasks.fits(frame));
        if !ends {
            return place.line();
        }
    }
    None
}

/// Returns the number of a route's answers that are errors of this service. One that says that there is no room is on
/// purpose.
fn errors(route: &Route) -> u64 {
    let answers = route.answers;
    answers
        .server_errors
        .saturating_sub(answers.refused + answers.timed_out)
}

/// Answers that are errors of this service.
pub(crate) fn server_errors(evidence: &Evidence) -> Vec<Finding> {
    let Some(requests) = &evidence.requests else {
        return Vec::new();
    };
    let all: u64 = requests.whole().map(errors).sum();
    let finished = requests.finished();
    if all < FEWEST_BAD || (all as f64) < SERVER_ERRORS * finished as f64 {
        return Vec::new();
    }
    let Some(worst) = requests.whole().max_by_key(|route| errors(route)) else {
        return Vec::new();
    };
    let words = Words {
        headline: format!("{all} of {finished} answers are errors of this service (5xx)."),
        seen: format!("{} of them are of {}.", errors(worst), worst.name),
        cause:
            "Something that the handler needs fails: a connection, a file, a time limit of its own."
                .to_owned(),
        fix: "Look for the errors in its log; an error is often fast, and hides in latencies."
            .to_owned(),
    };
    vec![Finding::fault(
        "server_errors",
        SERVER_ERRORS_WEIGHT,
        "/debug/await?format=json",
        words,
    )]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{Answers, Connections, Memory, Part, Peers};
    use crate::rules::judge;
    use crate::testing::{evidence, place, route};
    use crate::thresholds::MUCH_OF_ALL;

    fn ended(finished: u64, dropped: u64, answers: Answers) -> Evidence {
        let mut route = route("GET /generate", 10.0, finished);
        (route.dropped, route.answers) = (dropped, answers);
        route.dropped_after_ms = Some(250.0);
        let waits = [
            "shop::generate (src/generate.rs:15)",
            "tokio::sync::oneshot::Receiver",
        ];
        evidence(&[route], &[place("GET /generate", &waits, 10.0)])
    }

    #[test]
    fn work_for_nobody_is_told_on_the_right_side_of_each_threshold() {
        let none = Answers::default();
        let level = |finished, dropped| given_up(&ended(finished, dropped, none))[0].level;
        assert_eq!(level(6, 94), Level::Bound);
        assert_eq!(level(5, 95), Level::Fault);
        assert_eq!(level(50, 50), Level::Bound);
        assert!(given_up(&ended(51, 49, none)).is_empty());
        let found = given_up(&ended(5, 95, none)).remove(0);
        assert!(
            found
                .headline
                .starts_with("95 of 100 requests were given up after 250 ms on average")
                && found.headline.ends_with("before they had an answer."),
            "{found:?}"
        );
        assert!(found.seen.contains("src/generate.rs:15"), "{found:?}");
        // Dropping work of clients who left does not help those who are about to: a shorter queue does.
        assert!(
            found.fix.find("Bound the queue") < found.fix.find("is_closed"),
            "{found:?}"
        );
        assert!(given_up(&ended(0, FEWEST_BAD - 1, none)).is_empty());
        assert!(!given_up(&ended(0, FEWEST_BAD, none)).is_empty());
        let cut = Answers {
            server_errors: 98,
            timed_out: 98,
            ..none
        };
        assert!(
            !given_up(&ended(100, 0, cut)).is_empty(),
            "by a limit inside"
        );
    }

    #[test]
    fn a_value_that_each_request_begins_anew_is_told_with_its_line() {
        let line = "shop::model (src/model.rs:35)";
        let found = |maker: &[&str]| {
            let cut = Answers {
                server_errors: 96,
                timed_out: 96,
                ..Answers::default()
            };
            let mut evidence = ended(96, 0, cut);
            let requests = evidence.requests.as_mut().unwrap();
            let waits = [line, "a value that another request makes"];
            requests.places = vec![
                place("GET /generate", &waits, 7.0),
                place("GET /generate", maker, 1.0),
            ];
            given_up(&evidence).remove(0)
        };
        let load = "shop::load (src/model.rs:21)";
        let anew = found(&[line, load, "tokio::time::Sleep"]);
        assert!(anew.headline.contains(line), "{anew:?}");
        assert!(anew.fix.contains("spawned task"), "{anew:?}");
        let other = found(&["shop::score (src/score.rs:9)", "tokio::time::Sleep"]);
        assert!(other.headline.contains("time limit"), "{other:?}");
    }

    #[test]
    fn a_spawned_task_works_on_for_clients_who_left() {
        let handle = "tokio::task::JoinHandle";
        let of = |in_tasks: f64, task: &str| {
            let mut route = route("GET /quote", 10.0, 40);
            route.dropped = 60;
            let line = "shop::quote (src/quote.rs:9)";
            let spawned = place("GET /quote", &[line, task], in_tasks);
            let rest = place("GET /quote", &["(running)"], 10.0 - in_tasks);
            given_up(&evidence(&[route], &[spawned, rest])).remove(0)
        };
        let found = of(10.0 * MUCH_OF_ALL, handle);
        assert_eq!(found.level, Level::Fault, "{found:?}");
        let at = "they wait for a spawned task at shop::quote (src/quote.rs:9).";
        assert!(found.headline.ends_with(at), "{found:?}");
        assert!(found.cause.contains("runs on"), "{found:?}");
        assert_eq!(of(10.0 * MUCH_OF_ALL - 0.1, handle).level, Level::Bound);
        assert_eq!(of(10.0, "tokio::task::JoinSet").level, Level::Bound);
    }

    #[test]
    fn tasks_that_become_more_than_the_requests_are_work_for_nobody() {
        let level = |rise, is_steady| {
            let mut evidence = ended(50, 50, Answers::default());
            let tasks = Part {
                from: 30,
                to: 30 + rise,
                rise,
                is_steady,
            };
            evidence.memory = Some(Memory {
                tasks,
                ..Memory::default()
            });
            given_up(&evidence)[0].level
        };
        // Ten requests are in flight.
        assert_eq!(level(10, true), Level::Bound);
        assert_eq!(level(11, true), Level::Fault);
        assert_eq!(level(11, false), Level::Bound);
    }

    #[test]
    fn calls_that_are_made_again_are_told_from_two_connections_for_each_request() {
        // Six in ten may be clients' own limits, unless calls are made again.
        let told = |opened| {
            let cut = Answers {
                server_errors: 60,
                timed_out: 60,
                ..Answers::default()
            };
            let mut evidence = ended(100, 0, cut);
            evidence.connections = Some(Connections {
                upstreams: vec![Peers {
                    opened,
                    ..Peers::default()
                }],
                ..Connections::default()
            });
            let found = given_up(&evidence).remove(0);
            assert!(found.headline.contains("cut by a time limit"), "{found:?}");
            let is_told = found.seen.contains("made again");
            assert_eq!(found.level == Level::Fault, is_told, "{found:?}");
            is_told
        };
        assert!(!told(199) && told(200));
    }

    #[test]
    fn requests_that_are_given_up_in_a_queue_are_its_consequence() {
        let weight = |leaf: &str| {
            let mut route = route("GET /pay", 10.0, 0);
            route.dropped = 90;
            let waits = ["shop::pay (src/pay.rs:28)", leaf];
            let found = judge(&evidence(&[route], &[place("GET /pay", &waits, 10.0)]));
            let given_up = found.iter().find(|finding| finding.kind == "given_up");
            given_up.map_or(0.0, |finding| finding.weight)
        };
        assert!(weight("tokio::sync::Mutex::lock") < GIVEN_UP_WEIGHT);
        assert!(weight("tokio::sync::oneshot::Receiver") >= GIVEN_UP_WEIGHT);
    }

    #[test]
    fn errors_are_told_on_the_right_side_of_each_threshold() {
        let errors = |server_errors, refused| Answers {
            server_errors,
            refused,
            ..Answers::default()
        };
        assert!(server_errors(&ended(1000, 0, errors(49, 0))).is_empty());
        assert!(!server_errors(&ended(1000, 0, errors(50, 0))).is_empty());
        assert!(server_errors(&ended(10, 0, errors(FEWEST_BAD - 1, 0))).is_empty());
        let shed = ended(1000, 0, errors(900, 900));
        assert!(server_errors(&shed).is_empty(), "load is shed on purpose");
    }
}
