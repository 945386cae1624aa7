//! Requests that end badly: given up by their clients, cut by a time limit, or answered with an error of this service.

use ecosystem::figures::{self, count};
use ecosystem::{PartMeaning, WaitKind};

use super::table;
use crate::evidence::{Frame, Line, Part, Place, Requests, Route};
use crate::facts::Facts;
use crate::finding::{Row, Sighting};
use crate::threads::Places;
use crate::thresholds::{ASKED_AGAIN, DROPPED_HALF, DROPPED_MOST, FEWEST_BAD, SERVER_ERRORS};
use crate::waiting::whereabouts;

/// Requests of which most are given up, so that work goes on for nobody.
pub(crate) struct GivenUp {
    /// Requests that were given up or cut, of those that ended.
    cut: u64,
    ended: u64,
    /// Mean time after which requests were dropped, in milliseconds, of the route with most of them.
    after_ms: Option<f64>,
    /// True if nearly all are given up.
    are_most: bool,
    what: What,
    /// The place where most requests are.
    at: Option<Place>,
    /// Tasks that become more, with the requests in flight.
    tasks: Option<(Part, i64)>,
    /// Where threads compute meanwhile.
    computing: Option<Places>,
}

enum What {
    /// The value at a line is begun anew by each request.
    BegunAnew(Line),
    /// A time limit of the service cuts requests, which begin their calls again and again.
    CutAndAskedAgain(Retries),
    /// A time limit of the service cuts requests.
    Cut,
    /// Clients leave while requests wait for a task that was spawned at a line.
    LeftForTask(Line),
    /// Clients leave.
    Left,
}

/// Connections that were opened for each request that was cut.
struct Retries {
    for_each: f64,
    address: String,
    /// The innermost line of the requests.
    line: Option<Line>,
}

pub(crate) fn given_up(facts: &Facts<'_>) -> Option<GivenUp> {
    let requests = facts.requests?;
    let cut = requests.dropped() + requests.answers().timed_out;
    let ended = requests.dropped() + requests.finished();
    let share = cut as f64 / ended.max(1) as f64;
    if cut < FEWEST_BAD || share < DROPPED_HALF {
        return None;
    }
    let by_limit = requests.dropped() == 0;
    let again = retries(facts, requests, ended).filter(|_| by_limit);
    let what = match (again, begun_again(facts)) {
        (Some(again), _) => What::CutAndAskedAgain(again),
        (None, Some(line)) => What::BegunAnew(line),
        (None, None) if by_limit => What::Cut,
        (None, None) => match waits_for_spawned(facts) {
            Some(line) => What::LeftForTask(line),
            None => What::Left,
        },
    };
    let mut places = requests.places.iter();
    let at = places.find(|place| place.line().is_some());
    let threads = facts.evidence.threads.as_ref();
    Some(GivenUp {
        cut,
        ended,
        after_ms: requests.dropped_after_ms(),
        are_most: share >= DROPPED_MOST,
        what,
        at: at.cloned(),
        tasks: more_tasks(facts, requests),
        computing: threads.and_then(|threads| threads.computing()),
    })
}

/// Returns the line at which most requests wait for a value that one of them makes, if that request is further inside: it is
/// cut as the others are, and what it has made of the value is lost.
fn begun_again(facts: &Facts<'_>) -> Option<Line> {
    let requests = facts.requests?;
    for waits in facts.crowded(WaitKind::SingleFlight) {
        let Some(line) = waits.line() else { continue };
        let makes = |place: &Place| {
            let mut frames = place.frames.iter();
            let at = frames.position(|frame| frame.line() == Some(line));
            place.kind() != Some(WaitKind::SingleFlight)
                && at.is_some_and(|at| at + 2 < place.frames.len())
        };
        if requests.places.iter().any(makes) {
            return Some(line.clone());
        }
    }
    // A lock is a cell whose holder makes the value, if no request ever gets one.
    if requests.answers().successful > 0 {
        return None;
    }
    for waits in facts.crowded(WaitKind::Lock) {
        let Some(line) = waits.line() else { continue };
        let holds = |place: &Place| {
            let mut lines = place.frames.iter().filter_map(Frame::line);
            place.kind() != Some(WaitKind::Lock)
                && lines.any(|other| other.is_in_function_of(line) && other.line > line.line)
        };
        if requests.places.iter().any(holds) {
            return Some(line.clone());
        }
    }
    None
}

/// Returns the retries, if several connections to one address were opened for each of the requests that ended.
fn retries(facts: &Facts<'_>, requests: &Requests, ended: u64) -> Option<Retries> {
    for peers in facts.evidence.upstreams() {
        let for_each = (peers.opened + peers.ended) as f64 / ended as f64;
        if for_each >= ASKED_AGAIN {
            return Some(Retries {
                for_each,
                address: peers.address.clone(),
                line: requests.places.iter().find_map(Place::line).cloned(),
            });
        }
    }
    None
}

/// Tasks that become more than the requests in flight are: those of requests that are gone.
fn more_tasks(facts: &Facts<'_>, requests: &Requests) -> Option<(Part, i64)> {
    let tasks = facts.evidence.memory.as_ref()?.tasks;
    #[allow(clippy::cast_possible_truncation)] // Requests in flight are few.
    let in_flight = requests.in_flight.ceil() as i64;
    let is_more = tasks.rises_by_more_than(in_flight);
    is_more.then_some((tasks, in_flight))
}

/// Returns the line at which most requests wait for a task, which runs on when its request is dropped.
fn waits_for_spawned(facts: &Facts<'_>) -> Option<Line> {
    for place in facts.crowded(WaitKind::Task) {
        // A `JoinSet` ends its tasks when it is dropped, and so does a handle of tokio-util.
        let mut functions = place.frames.iter().filter_map(Frame::function);
        if !functions.any(|function| PartMeaning::EndsTasks.fits(function)) {
            return place.line().cloned();
        }
    }
    None
}

impl Sighting for GivenUp {
    fn row(&self) -> &'static Row {
        let runs_on = self.are_most || self.tasks.is_some();
        match &self.what {
            What::BegunAnew(_) if runs_on => table::BEGUN_ANEW,
            What::BegunAnew(_) => table::BEGUN_ANEW_BY_SOME,
            What::CutAndAskedAgain(_) => table::CUT_AND_ASKED_AGAIN,
            What::Cut if runs_on => table::CUT_ALL,
            What::Cut => table::CUT,
            What::LeftForTask(_) => table::GIVEN_UP_FOR_TASK,
            What::Left if runs_on => table::GIVEN_UP_IN_QUEUE,
            // Clients may have a limit of their own that is shorter than the work.
            What::Left => table::GIVEN_UP,
        }
    }

    fn places(&self) -> Vec<Frame> {
        match &self.what {
            What::BegunAnew(line) => vec![Frame::Own(line.clone())],
            _ => Vec::new(),
        }
    }

    fn headline(&self) -> String {
        let (cut, ended) = (count(self.cut as f64), count(self.ended as f64));
        let after = self.after_ms.map(figures::duration);
        let after = after.map(|time| format!(" after {time} on average"));
        let after = after.unwrap_or_default();
        match &self.what {
            What::BegunAnew(line) => format!(
                "{cut} of {ended} requests were cut{after}: the value at {line} is begun anew each time, and never made."
            ),
            What::CutAndAskedAgain(again) => {
                let at = again.line.as_ref().map(|line| format!(", at {line}"));
                let at = at.unwrap_or_default();
                format!(
                    "{cut} of {ended} requests were cut by a time limit (408 or 504), and begin their calls again and again{at}."
                )
            }
            What::Cut => {
                format!("{cut} of {ended} requests were cut by a time limit (408 or 504).")
            }
            What::LeftForTask(line) => format!(
                "{cut} of {ended} requests were given up{after}, before they had an answer: they wait for a spawned task at \
                 {line}."
            ),
            What::Left => {
                format!(
                    "{cut} of {ended} requests were given up{after}, before they had an answer."
                )
            }
        }
    }

    fn seen(&self) -> String {
        let mut seen = Vec::new();
        if let Some(place) = &self.at {
            seen.push(format!("They were at {}.", whereabouts(place)));
        }
        if let Some((tasks, in_flight)) = &self.tasks {
            seen.push(format!(
                "The tasks became more, from {} to {}, with {in_flight} requests in flight.",
                tasks.from, tasks.to
            ));
        }
        if let Some(places) = &self.computing {
            seen.push(format!("Threads still compute: {places}."));
        }
        if let What::CutAndAskedAgain(again) = &self.what {
            seen.push(format!(
                "For each of them, at least {:.1} connections to {} were opened: calls are given up and made again.",
                again.for_each, again.address
            ));
        }
        seen.join(" ")
    }
}

/// Answers that are errors of this service.
pub(crate) struct ServerErrors {
    all: u64,
    finished: u64,
    /// The route with most of them.
    worst: String,
    of_worst: u64,
}

/// Returns the number of a route's answers that are errors of this service. One that says that there is no room is on
/// purpose.
fn errors(route: &Route) -> u64 {
    let answers = route.answers;
    answers
        .server_errors
        .saturating_sub(answers.refused + answers.timed_out)
}

pub(crate) fn server_errors(facts: &Facts<'_>) -> Option<ServerErrors> {
    let requests = facts.requests?;
    let all: u64 = requests.whole().map(errors).sum();
    let finished = requests.finished();
    if all < FEWEST_BAD || (all as f64) < SERVER_ERRORS * finished as f64 {
        return None;
    }
    let worst = requests.whole().max_by_key(|route| errors(route))?;
    Some(ServerErrors {
        all,
        finished,
        worst: worst.name.clone(),
        of_worst: errors(worst),
    })
}

impl Sighting for ServerErrors {
    fn row(&self) -> &'static Row {
        table::SERVER_ERRORS
    }

    fn headline(&self) -> String {
        let (all, finished) = (self.all, self.finished);
        format!("{all} of {finished} answers are errors of this service (5xx).")
    }

    fn seen(&self) -> String {
        format!("{} of them are of {}.", self.of_worst, self.worst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Evidence;
    use crate::evidence::{Answers, Connections, Memory, Part, Peers};
    use crate::finding::{Finding, Level};
    use crate::rules::{judge, told};
    use crate::testing::{evidence, place, route};
    use crate::thresholds::MUCH_OF_ALL;

    fn given_up(evidence: &Evidence) -> Vec<Finding> {
        told(super::given_up(&Facts::of(evidence)))
    }

    fn server_errors(evidence: &Evidence) -> Vec<Finding> {
        told(super::server_errors(&Facts::of(evidence)))
    }

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
    fn a_value_under_a_lock_is_begun_anew_if_no_request_ever_gets_it() {
        let line = "shop::renewed (src/token.rs:36)";
        let found = |successful| {
            let answers = Answers {
                successful,
                server_errors: 96,
                timed_out: 96,
                ..Answers::default()
            };
            let mut evidence = ended(96 + successful, 0, answers);
            let log_in = ["shop::renewed (src/token.rs:39)", "tokio::time::Sleep"];
            let requests = evidence.requests.as_mut().unwrap();
            requests.places = vec![
                place("GET /generate", &[line, "tokio::sync::Mutex::lock"], 7.0),
                place("GET /generate", &log_in, 1.0),
            ];
            judge(&Facts::of(&evidence)).remove(0)
        };
        let anew = found(0);
        assert_eq!(anew.kind, "given_up", "the lock is told with it: {anew:?}");
        assert!(anew.headline.contains(line), "{anew:?}");
        assert!(!found(1).headline.contains("begun anew"));
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
            let found = judge(&Facts::of(&evidence(
                &[route],
                &[place("GET /pay", &waits, 10.0)],
            )));
            let given_up = found.iter().find(|finding| finding.kind == "given_up");
            given_up.map_or(0.0, |finding| finding.weight)
        };
        assert!(weight("tokio::sync::Mutex::lock") < table::GIVEN_UP.weight);
        assert!(weight("tokio::sync::oneshot::Receiver") >= table::GIVEN_UP.weight);
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
