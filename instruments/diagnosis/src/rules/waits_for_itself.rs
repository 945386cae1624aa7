//! Requests wait for each other, or for what nobody gives back: nothing of a route finishes.

use ecosystem::{Wait, WaitKind, figures};

use super::table;
use crate::evidence::{Frame, Line, Place, Requests};
use crate::facts::Facts;
use crate::finding::{Row, Sighting};
use crate::followed::{Followed, Unheld, thing};
use crate::threads::seen::Inside;
use crate::thresholds::{
    A_HOLDER, ALL_OF_ROUTE, GOES_ON, KNOWN_HOLDER, MUCH_OF_ROUTE, QUEUE, STANDSTILL, TASKS_AT_ONCE,
};
use crate::waiting::{Waiting, is_of_holders, whereabouts};

/// A wait of a route of which nothing finishes.
pub(crate) struct Standstill {
    waiting: Waiting,
    what: What,
}

enum What {
    /// Requests are past the first line, and wait for the same again at the second.
    EachOther(Line, Line),
    /// The receiver of a full channel takes nothing out.
    NotReceived(Receiver),
    /// Its holder waits for something else there.
    HeldUp(Option<Wait>, Option<Line>),
    /// A task that is no request holds it for long, and gives it back there.
    HeldByTask(Line),
    /// Requests of another route, which stay, may hold it.
    Elsewhere(Place),
    /// No request was seen that may hold it.
    Nobody,
    /// Many tasks at once wait for it, and none has it.
    NoTask(Unheld),
}

/// The receiver of a channel.
enum Receiver {
    /// It waits for this thing at this place, by the tasks.
    Waits(String, String),
    /// Tasks that are no requests are there, and one of them may be the receiver.
    MayBeAt(Inside),
    Unknown,
}

impl Receiver {
    fn of(waiting: &Waiting, facts: &Facts<'_>) -> Self {
        if let Some(followed) = followed(waiting, facts)
            && let Some(step) = followed.way.steps.get(1)
        {
            return Self::Waits(thing(step), step.place().to_owned());
        }
        facts
            .other_tasks
            .clone()
            .map_or(Self::Unknown, Self::MayBeAt)
    }
}

pub(crate) fn check(facts: &Facts<'_>) -> Vec<Standstill> {
    let mut found: Vec<Standstill> = Vec::new();
    let Some(requests) = facts.requests else {
        return found;
    };
    for waiting in &facts.waits {
        let what = if is_stuck(waiting, requests) {
            what(waiting, requests, facts)
        } else {
            no_task(waiting, facts).filter(|_| stands_still(waiting) || all_are_cut(waiting))
        };
        let Some(what) = what else {
            continue;
        };
        // Both lines of a pair are places where requests wait.
        let is_told = found.iter().any(|other| match (&other.what, &what) {
            (What::EachOther(first, second), What::EachOther(held, awaited)) => {
                (first, second) == (held, awaited)
                    && other.waiting.wait == waiting.wait
                    && other.waiting.place().route == waiting.place().route
            }
            _ => false,
        });
        if !is_told {
            found.push(Standstill {
                what,
                waiting: waiting.clone(),
            });
        }
    }
    found
}

/// Returns whether nothing of the routes goes on: their requests wait for holders alone, and none has finished for long.
fn is_stuck(waiting: &Waiting, requests: &Requests) -> bool {
    let of_queue = waiting.kind() == WaitKind::Queue;
    if !waiting.is_of_holders() && !of_queue {
        return false;
    }
    // Whatever its senders are, its receiver takes messages out.
    let wakes = waiting.release.as_ref().map_or(0, |release| release.wakes);
    if of_queue && wakes >= GOES_ON {
        return false;
    }
    let route = &waiting.route;
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
    let is_much = waiting.place().in_flight >= MUCH_OF_ROUTE * route.in_flight
        || held_and_awaited(waiting, requests).is_some();
    let all_wait = waits >= ALL_OF_ROUTE * route.in_flight;
    stands_still(waiting) && is_much && route.in_flight >= QUEUE && all_wait
}

fn stands_still(waiting: &Waiting) -> bool {
    waiting.route.finished == 0 || waiting.route.standstill >= STANDSTILL
}

/// Returns whether all requests of the route that ended were dropped, or answered by a time limit.
fn all_are_cut(waiting: &Waiting) -> bool {
    waiting.route.finished == waiting.route.answers.timed_out
}

/// Returns that all requests of the route wait for permits which no task has, as the snapshots show: these are taken last, when
/// the last permit may be gone.
fn no_task(waiting: &Waiting, facts: &Facts<'_>) -> Option<What> {
    let (tasks, line) = (facts.evidence.tasks.as_ref()?, waiting.line()?);
    if waiting.kind() != WaitKind::Limit {
        return None;
    }
    let unheld = Unheld::at(line, tasks)?;
    let all = ALL_OF_ROUTE * waiting.route.in_flight;
    (unheld.at_once >= all.max(TASKS_AT_ONCE)).then_some(What::NoTask(unheld))
}

/// Returns what these wait for; `None` if the tasks show who holds it, which is told with that.
fn what(waiting: &Waiting, requests: &Requests, facts: &Facts<'_>) -> Option<What> {
    if let Some((held, awaited)) = held_and_awaited(waiting, requests) {
        return Some(What::EachOther(held, awaited));
    }
    if waiting.kind() == WaitKind::Queue {
        return Some(What::NotReceived(Receiver::of(waiting, facts)));
    }
    // A holder that keeps it is past the wait all the time.
    if let Some(past) = &waiting.past
        && past.in_flight >= A_HOLDER
    {
        return Some(What::HeldUp(past.wait, past.line().cloned()));
    }
    if let Some((line, _)) = &waiting.holder {
        return Some(What::HeldByTask(line.clone()));
    }
    if followed(waiting, facts).is_some() {
        return None;
    }
    match elsewhere(waiting, requests) {
        Some(place) => Some(What::Elsewhere(place.clone())),
        None => no_task(waiting, facts).or(Some(What::Nobody)),
    }
}

/// Returns these waits followed to their end, if the tasks show who holds what most of them wait for.
fn followed<'a>(waiting: &Waiting, facts: &'a Facts<'_>) -> Option<Followed<'a>> {
    let tasks = facts.evidence.tasks.as_ref()?;
    let followed = Followed::at(tasks, waiting.kind(), waiting.line()?)?;
    (followed.known >= KNOWN_HOLDER).then_some(followed)
}

/// Returns where most requests of other routes are that may have taken one before. They stay: if they ended, they would give
/// it back.
fn elsewhere<'a>(waiting: &Waiting, requests: &'a Requests) -> Option<&'a Place> {
    // The place with most requests comes first.
    requests.places.iter().find(|place| {
        let is_wait = place.kind().is_some_and(is_of_holders);
        let is_other = !waiting.places.iter().any(|own| own.route == place.route);
        let stays = requests
            .route(&place.route)
            .is_some_and(|route| route.ended() == 0 || route.standstill >= STANDSTILL);
        is_other && stays && !is_wait && place.in_flight >= A_HOLDER && place.line().is_some()
    })
}

/// A line that some requests have passed, which wait for the same thing further on: they may hold it, and others wait
/// for it there. The line that was passed comes first.
fn held_and_awaited(waiting: &Waiting, requests: &Requests) -> Option<(Line, Line)> {
    let here = waiting.place();
    for other in &requests.places {
        if other.kind() != Some(waiting.kind()) || leaf_type(other) != leaf_type(here) {
            continue;
        }
        for (first, second) in [(here, other), (other, here)] {
            if let Some(line) = passed(first, second) {
                return Some((line.clone(), second.line()?.clone()));
            }
        }
    }
    None
}

/// The type that is waited for, without its method: a lock to read and to write is one.
fn leaf_type(place: &Place) -> Option<&str> {
    let function = match place.frames.last()? {
        Frame::State(state) => state.as_str(),
        leaf => leaf.function()?,
    };
    match function.rsplit_once("::") {
        Some((of_type, _)) => Some(of_type),
        None => Some(function),
    }
}

/// The line of the innermost own function at `first`, if requests at `second` are in the same function further on.
fn passed<'a>(first: &'a Place, second: &Place) -> Option<&'a Line> {
    let line = first.line()?;
    let mut lines = second.frames.iter().filter_map(Frame::line);
    let is_passed = lines.any(|other| other.is_in_function_of(line) && other.line > line.line);
    is_passed.then_some(line)
}

impl Sighting for Standstill {
    fn row(&self) -> &'static Row {
        match &self.what {
            What::EachOther(..) => table::WAITS_FOR_EACH_OTHER,
            What::NotReceived(Receiver::Waits(..)) => table::RECEIVER_WAITS,
            What::NotReceived(_) => table::NOT_RECEIVED,
            What::HeldUp(..) => table::HELD_UP,
            What::HeldByTask(_) => table::HELD_BY_TASK,
            What::Elsewhere(_) => table::HELD_ELSEWHERE,
            What::Nobody | What::NoTask(..) => table::STUCK,
        }
    }

    fn places(&self) -> Vec<Frame> {
        let mut places = vec![self.waiting.anchor()];
        match &self.what {
            What::EachOther(held, awaited) => {
                places.extend([Frame::Own(held.clone()), Frame::Own(awaited.clone())]);
            }
            What::Elsewhere(place) => places.extend(place.line().cloned().map(Frame::Own)),
            _ => {}
        }
        places
    }

    fn headline(&self) -> String {
        let headline = self.waiting.headline();
        match &self.what {
            What::EachOther(held, awaited) => format!(
                "{}: requests wait for each other: past {held}, they are {} again at {awaited}.",
                self.waiting.routes(),
                self.waiting.wait.in_words()
            ),
            What::NotReceived(Receiver::Waits(thing, place)) => {
                format!("{headline} Its receiver waits for {thing} at {place}.")
            }
            What::NotReceived(Receiver::MayBeAt(others)) => format!(
                "{headline} Its receiver takes nothing out. It may be at {}.",
                others.most
            ),
            What::NotReceived(Receiver::Unknown) => {
                format!("{headline} Its receiver takes nothing out.")
            }
            What::HeldUp(wait, line) => {
                let thing = wait.map_or("something else", |wait| wait.thing());
                let at = line.as_ref().map(|line| format!(" at {line}"));
                let at = at.unwrap_or_default();
                format!("{headline} Its holder waits for {thing}{at}.")
            }
            What::HeldByTask(line) => format!(
                "{headline} A task that is no request holds it for long, and gives it back at {line}."
            ),
            What::Elsewhere(place) => format!(
                "{headline} Requests that stay may hold it: {}, at {}.",
                place.route,
                whereabouts(place)
            ),
            What::Nobody => format!("{headline} No request is past this wait."),
            What::NoTask(..) => format!("{headline} No task has one."),
        }
    }

    fn seen(&self) -> String {
        let route = &self.waiting.route;
        let in_flight = figures::average(route.in_flight);
        let mut seen = vec![if stands_still(&self.waiting) {
            format!(
                "No request of this route finished for {:.1} s, with {in_flight} in flight.",
                route.standstill,
            )
        } else {
            let ended = figures::count(route.ended() as f64);
            format!(
                "All {ended} requests of this route that ended were given up or cut by a time limit."
            )
        }];
        if let What::HeldByTask(_) = &self.what {
            seen.push("No request is past this wait.".to_owned());
        }
        if !matches!(self.what, What::EachOther(..)) {
            seen.extend(self.waiting.let_go());
        }
        match &self.what {
            What::NotReceived(Receiver::MayBeAt(others)) => {
                seen.push(format!("Tasks that are no requests run {}.", others.places));
            }
            What::NoTask(unheld) => seen.push(unheld.seen()),
            What::Elsewhere(place) => {
                let stay = figures::average(place.in_flight);
                seen.push(format!("{stay} of {} stay.", place.route));
            }
            _ => {}
        }
        seen.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{Evidence, Release, Step, StepKind, Tasks, Way};
    use crate::finding::Finding;
    use crate::rules::{judge, told};
    use crate::testing::{both_sides, evidence, frames, place, route};

    fn look(evidence: &Evidence) -> Vec<Finding> {
        told(super::check(&Facts::of(evidence)))
    }

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
            frames: frames(&lock),
            by: frames(&[by]),
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
            found.headline.contains("No request is past this wait"),
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

    /// Recorded of a service that forgets permits: the last one went while it was looked at.
    #[test]
    fn permits_that_no_task_has_any_more_are_stuck() {
        let acquire = [FIRST, "tokio::sync::Semaphore::acquire"];
        let sleep = ["shop::render (src/render.rs:31)", "tokio::time::Sleep"];
        let with = |at_once: f64, standstill| {
            let mut route = route("GET /render", 6.0, 319);
            route.standstill = standstill;
            let places = [
                place("GET /render", &acquire, 5.4),
                place("GET /render", &sleep, 0.6),
            ];
            let mut evidence = evidence(&[route], &places);
            evidence.tasks = Some(Tasks {
                snapshots: 10,
                ways: vec![Way {
                    seen: at_once * 10.0,
                    ends: 80,
                    steps: vec![Step {
                        at: Some(FIRST.to_owned()),
                        kind: StepKind::Of(WaitKind::Limit),
                        ..Step::default()
                    }],
                }],
                ..Tasks::default()
            });
            evidence
        };
        both_sides(look, STANDSTILL, |standstill| with(8.0, standstill));
        both_sides(look, ALL_OF_ROUTE, |share| with(6.0 * share, 2.0));
        let mut cut = with(8.0, 0.1);
        assert!(look(&cut).is_empty());
        let route = &mut cut.requests.as_mut().unwrap().routes[0];
        route.answers.timed_out = route.finished;
        assert!(
            look(&cut)[0]
                .seen
                .starts_with("All 319 requests of this route")
        );
        let found = judge(&Facts::of(&with(8.0, 2.0)));
        assert_eq!(found.len(), 1, "it is told once: {found:?}");
        assert_eq!(found[0].kind, "stuck");
        assert!(found[0].headline.ends_with("No task has one."), "{found:?}");
    }

    /// Reported of event streams: each kept a connection of the pool while it paused, and the requests that wait for one were said
    /// to be past nobody.
    #[test]
    fn requests_that_stay_may_hold_what_others_wait_for() {
        let pool = [
            "shop::count (src/live.rs:55)",
            "(waiting for an object of the pool)",
        ];
        let pause = ["shop::events (src/live.rs:69)", "tokio::time::Sleep"];
        let with = |stays: f64, ended| {
            let mut body = route("body of GET /events", stays, ended);
            body.is_part = true;
            let mut count = route("GET /count", 9.6, 30);
            count.standstill = STANDSTILL;
            let places = [
                place("GET /count", &pool, 9.6),
                place("body of GET /events", &pause, stays),
            ];
            evidence(&[count, body], &places)
        };
        let found = look(&with(8.0, 0)).remove(0);
        assert!(
            found.headline.ends_with(
                "may hold it: body of GET /events, at shop::events (src/live.rs:69), waiting for a timer."
            ),
            "{found:?}"
        );
        assert!(
            found.fix.contains("give it back before the pause"),
            "{found:?}"
        );
        let told = judge(&Facts::of(&with(8.0, 0)));
        assert_eq!(told.len(), 1, "the pause is told with it: {told:?}");
        // Streams that end give back what they hold.
        for gone in [with(8.0, 100), with(A_HOLDER * 0.9, 0)] {
            let found = look(&gone).remove(0);
            assert!(
                found.headline.ends_with("No request is past this wait."),
                "{found:?}"
            );
        }
        // Once the tasks show the holder, nobody has to guess.
        let mut known = with(8.0, 0);
        let step = |at: &str, kind| Step {
            at: Some(at.to_owned()),
            kind: StepKind::Of(kind),
            waits_for: "a timer".to_owned(),
            ..Step::default()
        };
        known.tasks = Some(Tasks {
            snapshots: 10,
            ways: vec![Way {
                seen: 96.0,
                ends: 80,
                steps: vec![
                    step(pool[0], WaitKind::Pool),
                    step(pause[0], WaitKind::Timer),
                ],
            }],
            ..Tasks::default()
        });
        assert!(look(&known).is_empty());
        let told = judge(&Facts::of(&known));
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(
            told[0]
                .headline
                .ends_with("A holder of one waits for a timer at shop::events (src/live.rs:69)."),
            "{told:?}"
        );
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
    fn a_receiver_that_the_tasks_show_is_told_in_place_of_a_guess() {
        let sends = [
            "shop::rate (src/rate.rs:53)",
            "tokio::sync::mpsc::Sender::send",
        ];
        let full = [place("GET /rate", &sends, 8.0)];
        let mut evidence = evidence(&[route("GET /rate", 8.0, 0)], &full);
        let step = |at: &str, kind, waits_for: &str| Step {
            at: Some(at.to_owned()),
            kind: StepKind::Of(kind),
            waits_for: waits_for.to_owned(),
            ..Step::default()
        };
        let receiver = step("shop::store (src/rate.rs:70)", WaitKind::Lock, "a lock");
        evidence.tasks = Some(Tasks {
            snapshots: 10,
            ways: vec![Way {
                seen: 80.0,
                ends: 10,
                steps: vec![step(sends[0], WaitKind::Queue, "room"), receiver],
            }],
            ..Tasks::default()
        });
        let found = look(&evidence).remove(0);
        assert!(
            found
                .headline
                .ends_with("Its receiver waits for a lock at shop::store (src/rate.rs:70)."),
            "{found:?}"
        );
        assert!(!found.fix.contains("watch("), "{found:?}");
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
