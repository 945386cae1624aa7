//! Most of a route's time goes to a lock, a pool, a connection, a limit, a queue or the clients.

use ecosystem::{WaitKind, figures};

use super::table;
use crate::evidence::{Frame, Line, Place, Requests, innermost_line};
use crate::facts::Facts;
use crate::finding::{Advice, Row, Sighting};
use crate::thresholds::{
    A_HOLDER, FEWEST_BAD, HELD_BY_TASKS, MOST_OF_ROUTE, MUCH_OF_ROUTE, ONE_AT_WORK, RECEIVER,
    SAMPLES_OF_EACH,
};
use crate::waiting::{Waiting, whereabouts};

/// A wait to which most of a route's time goes.
pub(crate) struct LongWait {
    waiting: Waiting,
    what: What,
    /// True if no request can hold what these wait for.
    is_held_outside: bool,
}

/// Observation of a wait.
enum What {
    /// Nothing but the wait.
    Alone(&'static Row),
    /// The others wait while one request makes what they will find.
    SingleFlight,
    /// The pool lends one at a time: so many requests, on average, are at work with it.
    PoolOfOne(f64),
    /// All that the pool lends is at work, for the statement at a line.
    PoolForStatement(Line),
    /// All that the pool lends is at work.
    PoolAtWork,
    /// Tasks that are no requests give this share of the permits back, at a line.
    LimitForTasks(Line, f64),
    /// Permits are kept in a pause at this line, by so many requests at once.
    LimitInPause(Line, f64),
    /// Requests give permits back by hand, and some of them were cut, perhaps before that.
    LimitByHand,
    /// The queue's receiver waits there.
    Receiver(Place),
}

pub(crate) fn check(facts: &Facts<'_>) -> Vec<LongWait> {
    let mut found = Vec::new();
    let Some(requests) = facts.requests else {
        return found;
    };
    for waiting in &facts.waits {
        let Some(what) = what(waiting, requests) else {
            continue;
        };
        // The statement takes long only because SQLite lets one connection write, which is told.
        if matches!(what, What::PoolForStatement(_)) && facts.sqlite_sleeps.is_some() {
            continue;
        }
        found.push(LongWait {
            what,
            is_held_outside: waiting.past.is_none() && nobody_holds(waiting, requests),
            waiting: waiting.clone(),
        });
    }
    found
}

fn what(waiting: &Waiting, requests: &Requests) -> Option<What> {
    let is_much = waiting.share >= MUCH_OF_ROUTE;
    let is_most = waiting.share >= MOST_OF_ROUTE;
    if waiting.kind() == WaitKind::Limit
        && is_much
        && let Some((line, paused)) = in_pause(waiting, requests)
    {
        return Some(What::LimitInPause(line, paused));
    }
    let what = match waiting.kind() {
        WaitKind::Lock if is_much && waiting.is_queue() => {
            if !is_single_flight(waiting) {
                What::Alone(table::LOCK)
            } else if waiting.is_little() {
                return None;
            } else {
                What::SingleFlight
            }
        }
        WaitKind::Pool if is_much && waiting.is_queue() => of_pool(waiting, requests),
        WaitKind::Limit if is_much && is_for_tasks(waiting, requests) => {
            let (line, share) = waiting.holder.clone()?;
            What::LimitForTasks(line, share)
        }
        WaitKind::NewConnection if is_much => What::Alone(table::NEW_CONNECTION),
        WaitKind::Database if is_much && waiting.wait.is_transaction() => {
            What::Alone(table::TRANSACTION)
        }
        WaitKind::Limit if is_most && may_be_lost(waiting, requests) => What::LimitByHand,
        WaitKind::Limit if is_most => What::Alone(table::LIMIT),
        WaitKind::Queue if is_most => match receiver(waiting, requests) {
            Some(place) => What::Receiver(place.clone()),
            None => What::Alone(table::QUEUE),
        },
        // The service sends as fast as its clients take it.
        WaitKind::Client if is_most && !waiting.is_little() => What::Alone(table::CLIENT),
        _ => return None,
    };
    Some(what)
}

fn of_pool(waiting: &Waiting, requests: &Requests) -> What {
    let Some(past) = waiting
        .past
        .as_ref()
        .filter(|past| is_at_work(waiting, past))
    else {
        return What::Alone(table::POOL);
    };
    let at_work = at_work(waiting, requests);
    match past.line() {
        _ if at_work <= ONE_AT_WORK => What::PoolOfOne(at_work),
        Some(line) if past.kind() == Some(WaitKind::Database) => {
            What::PoolForStatement(line.clone())
        }
        _ => What::PoolAtWork,
    }
}

/// Returns whether most of the permits that requests queue for come back from tasks that are no requests, and for which no
/// request waits.
fn is_for_tasks(waiting: &Waiting, requests: &Requests) -> bool {
    let Some((_, share)) = &waiting.holder else {
        return false;
    };
    let is_awaited = requests.places.iter().any(|place| {
        let route = &waiting.place().route;
        let is_other = matches!(
            place.kind(),
            Some(WaitKind::Task | WaitKind::Channel | WaitKind::Set)
        );
        place.route == *route && is_other
    });
    waiting.is_queue() && *share >= HELD_BY_TASKS && !is_awaited
}

/// Returns whether requests may have been cut while they had a permit that they would have given back by hand.
fn may_be_lost(waiting: &Waiting, requests: &Requests) -> bool {
    let release = waiting.release.as_ref();
    let is_noted = release.is_some_and(|release| release.is_by_drop.is_some());
    is_noted && waiting.given_back_by_hand().is_some() && requests.cut() >= FEWEST_BAD
}

/// Returns the line at which most requests pause that have a permit, and their number, if others do what the permits are for:
/// they call something. The permits are given back further on in that function.
fn in_pause(waiting: &Waiting, requests: &Requests) -> Option<(Line, f64)> {
    let (mut paused, mut at_work) = (0.0, 0.0);
    let mut line = None;
    for place in waiting.all_past(requests) {
        match place.kind() {
            Some(WaitKind::Timer) => {
                line = line.or(place.line());
                paused += place.in_flight;
            }
            Some(kind) if is_call(kind) => at_work += place.in_flight,
            _ => {}
        }
    }
    let (line, release) = (line?, waiting.release.as_ref()?);
    let mut given_back = release.by.iter().filter_map(Frame::line);
    let is_kept = given_back.any(|back| back.is_in_function_of(line) && back.line >= line.line);
    (is_kept && at_work > 0.0 && paused >= at_work).then(|| (line.clone(), paused))
}

/// Returns where the receiver of a full queue waits most: in the function that takes messages out.
fn receiver<'a>(waiting: &Waiting, requests: &'a Requests) -> Option<&'a Place> {
    let takes = innermost_line(&waiting.release.as_ref()?.by)?;
    // The place with most requests comes first.
    requests.places.iter().find(|place| {
        let is_there = place
            .line()
            .is_some_and(|line| line.is_in_function_of(takes));
        is_there && place.kind().is_some_and(is_call) && place.in_flight >= RECEIVER
    })
}

/// Returns whether such a wait is for something else that works.
fn is_call(kind: WaitKind) -> bool {
    use WaitKind::{Answer, AnswerOrStream, BlockingPool, Body, Database, Network, NewConnection};
    matches!(
        kind,
        Answer | AnswerOrStream | BlockingPool | Body | Database | Network | NewConnection
    )
}

/// Returns whether what the pool lent is at work for the requests that have it: they await the answer of a database or
/// of a socket, or are in the call that took it. They are at `past`.
fn is_at_work(waiting: &Waiting, past: &Place) -> bool {
    let is_in_call = past.line().is_some() && past.line() == waiting.line();
    let is_answer = matches!(past.kind(), Some(WaitKind::Database | WaitKind::Network));
    is_in_call || is_answer
}

/// Returns the number of requests, on average, that are at work with what the pool lent.
fn at_work(waiting: &Waiting, requests: &Requests) -> f64 {
    let mut at_work = 0.0;
    for place in &requests.places {
        let is_answer = matches!(place.kind(), Some(WaitKind::Database | WaitKind::Network));
        let is_in_call = place.line().is_some() && place.line() == waiting.line();
        if is_answer || is_in_call && place.kind() != Some(WaitKind::Pool) {
            at_work += place.in_flight;
        }
    }
    at_work
}

/// Returns whether requests wait for a lock, now and then and all at once, while one of them makes what the others will
/// find: most requests of the route do not wait there, and its holder is a request past it.
fn is_single_flight(waiting: &Waiting) -> bool {
    let in_bursts = waiting.ms.is_some_and(|ms| waiting.comes_in_bursts(ms));
    in_bursts && waiting.past.is_some()
}

/// Returns whether no request can hold what these wait for: none is elsewhere, and one would have been seen there.
fn nobody_holds(waiting: &Waiting, requests: &Requests) -> bool {
    let elsewhere = requests.in_flight - waiting.in_flight;
    waiting.is_of_holders()
        && waiting.is_queue()
        && elsewhere < A_HOLDER
        && requests.samples as f64 >= SAMPLES_OF_EACH * requests.in_flight
}

impl Sighting for LongWait {
    fn row(&self) -> &'static Row {
        match &self.what {
            What::Alone(row) => row,
            What::SingleFlight => table::SINGLE_FLIGHT,
            What::PoolOfOne(_) => table::POOL_OF_ONE,
            What::PoolForStatement(_) => table::POOL_FOR_STATEMENT,
            What::PoolAtWork => table::POOL_AT_WORK,
            What::LimitForTasks(..) => table::LIMIT_FOR_TASKS,
            What::LimitInPause(..) => table::LIMIT_IN_PAUSE,
            What::LimitByHand => table::LIMIT_BY_HAND,
            What::Receiver(place) if place.kind() == Some(WaitKind::Database) => {
                table::QUEUE_FOR_STATEMENT
            }
            What::Receiver(_) => table::QUEUE_FOR_RECEIVER,
        }
    }

    fn advice(&self) -> Option<Advice> {
        match &self.what {
            What::Alone(_) => Some(Advice {
                cause: self.waiting.wait.cause,
                fix: self.waiting.wait.fix,
            }),
            _ => None,
        }
    }

    fn share(&self) -> f64 {
        match &self.what {
            What::SingleFlight => self.waiting.share_of_all / 10.0,
            _ => self.waiting.share / 2.0,
        }
    }

    fn places(&self) -> Vec<Frame> {
        let mut places = vec![self.waiting.anchor()];
        if let What::PoolForStatement(line) | What::LimitInPause(line, _) = &self.what {
            places.push(Frame::Own(line.clone()));
        }
        if let What::Receiver(place) = &self.what {
            places.extend(place.line().cloned().map(Frame::Own));
        }
        if let Some(past) = &self.waiting.past
            && past.kind() == Some(WaitKind::Timer)
        {
            places.extend(past.line().cloned().map(Frame::Own));
        }
        places
    }

    fn headline(&self) -> String {
        let headline = self.waiting.headline();
        match &self.what {
            What::LimitForTasks(line, share) => format!(
                "{headline} Tasks that are no requests give {:.0} % of them back, at {line}.",
                share * 100.0
            ),
            What::Receiver(place) => {
                format!("{headline} Its receiver is at {}.", whereabouts(place))
            }
            What::LimitInPause(line, _) => {
                format!("{headline} Those with a permit pause at {line}.")
            }
            _ => headline,
        }
    }

    fn seen(&self) -> String {
        let mut seen = self.waiting.seen();
        if let What::SingleFlight = &self.what {
            let absent = self.waiting.place().absent * 100.0;
            seen = format!("{seen} For {absent:.0} % of the time no request waits there.");
        }
        if let Some(past) = &self.waiting.past {
            let past = whereabouts(past);
            seen = format!("{seen} Requests past this wait are at {past}.");
        } else if self.is_held_outside {
            seen += " No request is past this wait: the holder is outside of requests, or was forgotten.";
        }
        match &self.what {
            What::PoolOfOne(at_work) => {
                let at_work = figures::average(*at_work);
                format!("{seen} At any time {at_work} requests wait for an answer on one.")
            }
            What::LimitInPause(_, paused) => {
                format!(
                    "{seen} {} at once pause with a permit.",
                    figures::average(*paused)
                )
            }
            What::PoolForStatement(line) => format!(
                "{seen} All connections of the pool are lent to requests that wait for the statement at {line}."
            ),
            _ => seen,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{Evidence, Memory, Part, Release};
    use crate::finding::{Finding, Level};
    use crate::rules::{judge, told};
    use crate::testing::{both_sides, evidence, frames, of_threads, place, route};
    use crate::threads::{Stack, State, Thread};
    use crate::thresholds::{ABSENT, PASSES_BY, QUEUE};

    fn look(evidence: &Evidence) -> Vec<Finding> {
        told(super::check(&Facts::of(evidence)))
    }

    const LINE: &str = "shop::read (src/read.rs:7)";

    /// Returns evidence of ten requests in flight, of which this share waits and the rest computes.
    fn waiting(leaf: &str, share: f64) -> Evidence {
        evidence(
            &[route("GET /read", 10.0, 100)],
            &[
                place("GET /read", &[LINE, leaf], 10.0 * share),
                place(
                    "GET /read",
                    &["shop::past (src/read.rs:9)", "(running)"],
                    10.0 - 10.0 * share,
                ),
            ],
        )
    }

    #[test]
    fn a_wait_is_a_cause_from_a_share_of_its_route() {
        for (leaf, threshold) in [
            ("tokio::sync::Mutex::lock", MUCH_OF_ROUTE),
            ("(waiting for a connection of the pool)", MUCH_OF_ROUTE),
            ("(waiting for a connection)", MUCH_OF_ROUTE),
            (
                "(waiting for a transaction to begin, commit or roll back)",
                MUCH_OF_ROUTE,
            ),
            ("tokio::sync::Semaphore::acquire", MOST_OF_ROUTE),
            ("tokio::sync::mpsc::Sender::send", MOST_OF_ROUTE),
            (
                "(response body: the client has not taken the last piece)",
                MOST_OF_ROUTE,
            ),
        ] {
            both_sides(look, threshold, |share| waiting(leaf, share));
        }
    }

    #[test]
    fn a_lock_is_a_cause_from_one_waiter_on_average() {
        both_sides(look, QUEUE, |in_flight| {
            evidence(
                &[route("GET /read", in_flight, 100)],
                &[place(
                    "GET /read",
                    &[LINE, "tokio::sync::Mutex::lock"],
                    in_flight,
                )],
            )
        });
    }

    #[test]
    fn a_limit_is_a_bound_and_a_cache_that_another_request_fills_is_neither() {
        let limit = look(&waiting("tokio::sync::Semaphore::acquire", 0.9));
        assert_eq!(limit[0].level, Level::Bound);
        let flight = "(waiting for another request that fills the cache)";
        assert!(look(&waiting(flight, 0.9)).is_empty());
    }

    #[test]
    fn permits_that_background_tasks_take_are_a_fault_on_the_right_side_of_each_threshold() {
        let with = |share: f64, by: &str, awaits: &str| {
            // Too small a share for a bound.
            let mut evidence = waiting("tokio::sync::Semaphore::acquire", MUCH_OF_ROUTE);
            let requests = evidence.requests.as_mut().unwrap();
            requests.places.push(place(
                "GET /read",
                &["shop::read (src/read.rs:8)", awaits],
                1.0,
            ));
            requests.releases = vec![Release {
                route: "GET /read".to_owned(),
                frames: requests.places[0].frames.clone(),
                by: frames(&[by]),
                share,
                is_of_task: true,
                ..Release::default()
            }];
            evidence
        };
        let poll = "shop::poll_one (src/poll.rs:27)";
        let call = "(waiting for the answer)";
        both_sides(look, HELD_BY_TASKS, |share| with(share, poll, call));
        let found = look(&with(0.86, poll, call)).remove(0);
        assert!(
            found
                .headline
                .contains("give 86 % of them back, at shop::poll_one (src/poll.rs:27)"),
            "{found:?}"
        );
        assert!(
            look(&with(0.86, LINE, call)).is_empty(),
            "a request that nobody sees"
        );
        let task = "tokio::task::JoinHandle";
        assert!(
            look(&with(0.86, poll, task)).is_empty(),
            "requests await the tasks"
        );
        let mut own = with(0.86, poll, call);
        own.requests.as_mut().unwrap().releases[0].is_of_task = false;
        assert!(look(&own).is_empty(), "another request");
    }

    /// Reported of a crawler: its tasks were said to become more, and its permits to be lent.
    #[test]
    fn permits_that_are_kept_in_a_pause_are_a_fault() {
        let pause = "shop::fetch (src/crawl.rs:43)";
        let with = |paused: f64, called: f64, given_back: &str| {
            let acquire = [
                "shop::fetch (src/crawl.rs:39)",
                "tokio::sync::Semaphore::acquire",
            ];
            let call = ["shop::fetch (src/crawl.rs:41)", "(waiting for the answer)"];
            let places = [
                place("page", &acquire, 371.0),
                place("page", &[pause, "tokio::time::Sleep"], paused),
                place("page", &call, called),
            ];
            let mut evidence = evidence(&[route("page", 380.0, 147)], &places);
            evidence.requests.as_mut().unwrap().releases = vec![Release {
                route: "page".to_owned(),
                frames: frames(&acquire),
                by: frames(&[
                    given_back,
                    "tokio::sync::batch_semaphore::Semaphore::add_permits",
                ]),
                share: 1.0,
                ..Release::default()
            }];
            evidence.memory = Some(Memory {
                seconds: 10.0,
                tasks: Part {
                    from: 263,
                    to: 536,
                    rise: 134,
                    is_steady: true,
                },
                ..Memory::default()
            });
            evidence
        };
        let (after, before) = (
            "shop::fetch (src/crawl.rs:49)",
            "shop::fetch (src/crawl.rs:42)",
        );
        let found = judge(&Facts::of(&with(7.5, 0.7, after)));
        assert_eq!(
            found.len(),
            1,
            "tasks that queue are no second fault: {found:?}"
        );
        assert_eq!(found[0].level, Level::Fault);
        assert!(
            found[0].headline.ends_with(&format!("pause at {pause}.")),
            "{found:?}"
        );
        for others in [
            with(7.5, 0.7, before),
            // Nothing but the pause was seen, so it may be what the limit is for.
            with(7.5, 0.0, after),
            with(1.0, 1.1, after),
        ] {
            assert_eq!(look(&others).remove(0).level, Level::Bound);
        }
    }

    #[test]
    fn a_full_queue_is_told_with_what_its_receiver_awaits() {
        let with = |inside: f64, leaf: &str| {
            let send = [
                "shop::shop (src/orders.rs:80)",
                "tokio::sync::mpsc::Sender::send",
            ];
            let consume = ["shop::consume (src/orders.rs:51)", leaf];
            let mut evidence = evidence(
                &[route("shop", 4.0, 0), route("consumer", inside, 0)],
                &[
                    place("shop", &send, 4.0),
                    place("consumer", &consume, inside),
                ],
            );
            evidence.requests.as_mut().unwrap().releases = vec![Release {
                route: "shop".to_owned(),
                frames: frames(&send),
                by: frames(&[
                    "shop::consume (src/orders.rs:45)",
                    "tokio::sync::mpsc::Receiver::recv",
                ]),
                share: 1.0,
                wakes: 1000,
                ..Release::default()
            }];
            judge(&Facts::of(&evidence))
        };
        let found = with(0.9, "sqlx_sqlite");
        assert_eq!(
            found.len(),
            1,
            "messages are taken, and the statement is told with it: {found:?}"
        );
        assert_eq!(found[0].level, Level::Fault);
        assert!(
            found[0]
                .headline
                .contains("shop::consume (src/orders.rs:51)"),
            "{found:?}"
        );
        assert!(found[0].fix.contains("one transaction"), "{found:?}");
        assert_eq!(with(0.9, "(waiting for the answer)")[0].level, Level::Bound);
        assert!(
            !with(RECEIVER * 0.9, "sqlx_sqlite")[0]
                .headline
                .contains("receiver")
        );
    }

    #[test]
    fn a_pool_whose_connections_are_at_work_is_a_bound() {
        let found = |past: &[&str]| {
            let pool = [LINE, "(waiting for a connection of the pool)"];
            let places = [
                place("GET /read", &pool, 8.0),
                place("GET /read", past, 2.0),
            ];
            look(&evidence(&[route("GET /read", 10.0, 100)], &places)).remove(0)
        };
        let query = "shop::query (src/read.rs:9)";
        for past in [&[query, "tokio::net"][..], &[LINE, "tokio::sync::oneshot"]] {
            let found = found(past);
            assert_eq!(found.level, Level::Bound, "{found:?}");
            assert!(found.cause.contains("are at work"), "{found:?}");
        }
        let level = |at_work| {
            let pool = [LINE, "(waiting for a connection of the pool)"];
            let places = [
                place("GET /read", &pool, 8.0),
                place("GET /read", &[query, "sqlx_postgres"], at_work),
            ];
            look(&evidence(&[route("GET /read", 10.0, 100)], &places))
                .remove(0)
                .level
        };
        assert_eq!(level(ONE_AT_WORK), Level::Fault, "a pool of one");
        assert_eq!(level(ONE_AT_WORK * 1.01), Level::Bound);
        let other = found(&[query, "(waiting for the answer)"]);
        assert_eq!(other.level, Level::Fault, "{other:?}");
        assert!(other.cause.contains("await something else"), "{other:?}");
    }

    /// Reported of a statement without an index: the pool was told first, and the statement below it, without a number.
    #[test]
    fn a_pool_that_a_statement_fills_is_told_with_the_statement() {
        let query = "shop::query (src/read.rs:9)";
        let pool = [LINE, "(waiting for a connection of the pool)"];
        let places = [
            place("GET /read", &pool, 5.0),
            place("GET /read", &[query, "sqlx_postgres"], 5.0),
        ];
        let found = judge(&Facts::of(&evidence(
            &[route("GET /read", 10.0, 100)],
            &places,
        )));
        let kinds: Vec<_> = found.iter().map(|finding| finding.kind).collect();
        assert_eq!(kinds, ["pool"], "{found:?}");
        assert!(found[0].seen.contains(query), "{found:?}");
        assert!(found[0].fix.contains("EXPLAIN"), "{found:?}");
        let alone = [place("GET /read", &[query, "sqlx_postgres"], 9.0)];
        let found = judge(&Facts::of(&evidence(
            &[route("GET /read", 10.0, 100)],
            &alone,
        )));
        assert!(found[0].fix.contains("EXPLAIN"), "{found:?}");
    }

    /// Reported of an INSERT that waited for a transaction of another task: `EXPLAIN` has nothing to say of it.
    #[test]
    fn a_statement_that_waits_for_sqlites_writer_is_not_called_slow() {
        let pool = [LINE, "(waiting for a connection of the pool)"];
        let query = ["shop::insert (src/write.rs:9)", "sqlx_sqlite"];
        let places = [
            place("POST /write", &pool, 5.0),
            place("POST /write", &query, 5.0),
        ];
        let mut evidence = evidence(&[route("POST /write", 10.0, 100)], &places);
        let says_slow = |evidence: &Evidence| {
            let found = judge(&Facts::of(evidence));
            found
                .iter()
                .any(|one| one.kind == "pool" && one.fix.contains("EXPLAIN"))
        };
        assert!(says_slow(&evidence));
        let sleeps = [
            "sqlite3_step",
            "btreeBeginTrans",
            "sqlite3InvokeBusyHandler",
        ];
        let sleeps = Stack::of(300, State::Blocked, &sleeps);
        let worker = Thread::of("sqlx-sqlite-worker", vec![sleeps]);
        evidence.threads = of_threads(vec![worker], 0.0).threads;
        assert!(!says_slow(&evidence));
    }

    #[test]
    fn a_pool_that_equal_work_fills_is_told_as_that() {
        let found = |absent| {
            let pool = [LINE, "(waiting for a connection of the pool)"];
            let mut waits = place("GET /stats", &pool, 20.0);
            waits.absent = absent;
            let mut route = route("GET /stats", 22.0, 1000);
            route.median_ms = Some(0.1);
            let found = judge(&Facts::of(&evidence(&[route], &[waits])));
            found.iter().any(|finding| finding.kind == "pool")
        };
        assert!(!found(ABSENT) && found(ABSENT * 0.99));
    }

    #[test]
    fn a_lock_for_which_most_requests_do_not_wait_may_be_a_single_flight() {
        let level = |median: f64, absent: f64, is_past: bool| {
            let mut waits = place("GET /stats", &[LINE, "tokio::sync::Mutex::lock"], 6.0);
            waits.absent = absent;
            let mut places = vec![waits];
            if is_past {
                let query = ["shop::read (src/read.rs:9)", "sqlx_postgres"];
                places.push(place("GET /stats", &query, 0.5));
            }
            let mut route = route("GET /stats", 6.5, 10_000);
            // They wait for 6 ms on average.
            route.median_ms = Some(6.0 * median);
            look(&evidence(&[route], &places)).remove(0).level
        };
        assert_eq!(level(PASSES_BY * 0.99, ABSENT, true), Level::Wait);
        assert_eq!(level(PASSES_BY * 1.01, ABSENT, true), Level::Fault);
        assert_eq!(level(0.0, ABSENT * 0.99, true), Level::Fault);
        assert_eq!(level(0.0, ABSENT, false), Level::Fault, "of a task");
    }

    #[test]
    fn the_headline_says_what_and_where_and_the_evidence_who_is_past_it() {
        let found = look(&waiting("tokio::sync::Mutex::lock", 0.9)).remove(0);
        assert_eq!(
            found.headline,
            "GET /read: 900 ms of 1.00 s waiting for a lock at shop::read (src/read.rs:7)."
        );
        assert!(
            found
                .seen
                .contains("past this wait are at shop::past (src/read.rs:9)"),
            "{found:?}"
        );
    }

    #[test]
    fn without_anybody_past_it_the_holder_is_outside_of_requests() {
        let says = |all: f64, elsewhere: f64, samples: f64| {
            let waits = place(
                "GET /read",
                &[LINE, "tokio::sync::Mutex::lock"],
                all - elsewhere,
            );
            let mut evidence = evidence(&[route("GET /read", all, 100)], &[waits]);
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let samples = (samples * all) as u64;
            evidence.requests.as_mut().unwrap().samples = samples;
            look(&evidence)[0]
                .seen
                .contains("No request is past this wait")
        };
        assert!(says(10.0, A_HOLDER * 0.99, SAMPLES_OF_EACH));
        assert!(!says(10.0, A_HOLDER, SAMPLES_OF_EACH));
        assert!(!says(10.0, 0.0, SAMPLES_OF_EACH - 0.1));
        // One of a thousand holds it: a small share, and not always among the samples.
        assert!(!says(1000.0, 1.0, SAMPLES_OF_EACH));
        assert!(!says(1000.0, 0.0, 3.0));
    }
}
