//! Waits followed to their end: from what is waited for to its holder, to the holder's own wait, and so on.
//!
//! The await profile says how much time a wait takes, and snapshots of all tasks say who holds what it is for.

use ecosystem::{WaitKind, figures};

use super::table;
use crate::evidence::{Circle, Frame, Requests, Step, StepKind, Tasks};
use crate::facts::Facts;
use crate::finding::{Advice, Row, Sighting};
use crate::followed::{Followed, thing};
use crate::thresholds::{MOST_OF_ROUTE, ONE_TASK_MS, ONE_TASK_QUEUE, TASKS_AT_ONCE};
use crate::waiting::Waiting;

/// Words for the holders of what is waited for, by the kind of the wait.
struct Held {
    /// Kind of the wait.
    kind: WaitKind,
    /// The holder, as the subject of a sentence.
    who: &'static str,
    /// Row if the holder waits for something else.
    waits: &'static Row,
    /// Row if a thread polls the holder.
    runs: &'static Row,
}

const HELD: &[Held] = &[
    Held {
        kind: WaitKind::Lock,
        who: "Its holder",
        waits: table::LOCK_HELD,
        runs: table::LOCK_HELD_IN_WORK,
    },
    Held {
        kind: WaitKind::Pool,
        who: "A holder of one",
        waits: table::POOL_HELD,
        runs: table::POOL_HELD_IN_WORK,
    },
    Held {
        kind: WaitKind::Limit,
        who: "A holder of a permit",
        waits: table::LIMIT_HELD,
        runs: table::LIMIT_HELD_IN_WORK,
    },
    Held {
        kind: WaitKind::Channel,
        who: "The one task that answers",
        waits: table::ONE_ANSWERS,
        runs: table::ONE_ANSWERS_WITH_WORK,
    },
    Held {
        kind: WaitKind::Queue,
        who: "Its receiver",
        waits: table::QUEUE_HELD,
        runs: table::QUEUE_HELD_IN_WORK,
    },
];

/// A wait whose end is known.
pub(crate) struct Ended<'a> {
    held: &'static Held,
    followed: Followed<'a>,
    /// Time, wait and line, as a sentence.
    wait: String,
    /// Place of the wait.
    at: Frame,
    /// Share of the routes' time; 0 without requests.
    share: f64,
    snapshots: u32,
}

/// Returns the waits of requests for which the tasks show who holds what they wait for.
pub(crate) fn of_requests<'a>(facts: &'a Facts<'_>) -> Vec<Ended<'a>> {
    let mut found = Vec::new();
    let (Some(tasks), Some(requests)) = (&facts.evidence.tasks, facts.requests) else {
        return found;
    };
    for waiting in &facts.waits {
        found.extend(of_wait(waiting, requests, tasks));
    }
    found.retain(|ended| !ended.is_for_sqlites_writer(facts));
    found
}

fn of_wait<'a>(waiting: &Waiting, requests: &Requests, tasks: &'a Tasks) -> Option<Ended<'a>> {
    let held = HELD.iter().find(|held| held.kind == waiting.kind())?;
    let is_told = match held.kind {
        WaitKind::Lock | WaitKind::Pool => waiting.is_much() && waiting.is_queue(),
        WaitKind::Limit | WaitKind::Queue => waiting.share >= MOST_OF_ROUTE,
        _ => is_for_one_answer(waiting, requests),
    };
    let line = waiting.line().filter(|_| is_told)?;
    let followed = Followed::at(tasks, held.kind, line)?;
    // Of many holders, each may have a waiter of its own.
    if matches!(held.kind, WaitKind::Channel | WaitKind::Queue) && !followed.is_for_one() {
        return None;
    }
    // Several that answer are workers, who are at their limit.
    if held.kind == WaitKind::Channel && !followed.is_one() {
        return None;
    }
    Some(Ended {
        held,
        followed,
        wait: waiting.headline(),
        at: waiting.anchor(),
        share: waiting.share,
        snapshots: tasks.snapshots,
    })
}

/// Returns whether many requests of a route wait for long for answers of another task.
fn is_for_one_answer(waiting: &Waiting, requests: &Requests) -> bool {
    let route = requests.route(&waiting.place().route);
    waiting.wait.is_answer_of_task()
        && waiting.is_much()
        && waiting.in_flight >= ONE_TASK_QUEUE
        && waiting.ms.is_none_or(|ms| ms >= ONE_TASK_MS)
        && route.is_some_and(|route| !route.is_part)
}

/// Returns waits of tasks, if the process has no requests in flight, or none that are seen.
pub(crate) fn of_tasks<'a>(facts: &'a Facts<'_>) -> Vec<Ended<'a>> {
    let mut found = Vec::new();
    let has_requests = facts
        .requests
        .is_some_and(|requests| requests.in_flight > 0.0);
    let Some(tasks) = facts.evidence.tasks.as_ref().filter(|_| !has_requests) else {
        return found;
    };
    let mut done: Vec<(&str, StepKind)> = Vec::new();
    for way in &tasks.ways {
        let Some(first) = way.first() else { continue };
        let Some(at) = &first.at else { continue };
        let Some(held) = HELD
            .iter()
            .find(|held| first.kind == StepKind::Of(held.kind))
        else {
            continue;
        };
        // News are for all who wait, and come when they come.
        let is_answer = first.wait().is_some_and(|wait| wait.is_answer_of_task());
        if held.kind == WaitKind::Channel && !is_answer {
            continue;
        }
        if done.contains(&(at, first.kind)) {
            continue;
        }
        done.push((at, first.kind));
        let is_here = |step: &Step| step.at.as_ref() == Some(at) && step.kind == first.kind;
        let Some(followed) = Followed::of(tasks, is_here) else {
            continue;
        };
        if followed.at_once < TASKS_AT_ONCE || !followed.is_for_one() {
            continue;
        }
        if held.kind == WaitKind::Channel && !followed.is_one() {
            continue;
        }
        found.push(Ended {
            held,
            wait: format!(
                "{} tasks at once wait for {} at {at}.",
                figures::average(followed.at_once),
                thing(first)
            ),
            followed,
            at: first.frame(),
            share: 0.0,
            snapshots: tasks.snapshots,
        });
    }
    found.retain(|ended| !ended.is_for_sqlites_writer(facts));
    found
}

impl Ended<'_> {
    /// Returns whether the holder has a connection for a statement.
    fn is_for_statement(&self) -> bool {
        self.held.kind == WaitKind::Pool && self.followed.is_statement()
    }

    /// Returns whether that statement takes long only because `SQLite` lets one connection write, which is told.
    fn is_for_sqlites_writer(&self, facts: &Facts<'_>) -> bool {
        facts.sqlite_sleeps.is_some() && self.is_for_statement()
    }
}

impl Sighting for Ended<'_> {
    fn row(&self) -> &'static Row {
        match self.followed.end.kind {
            StepKind::Of(WaitKind::Running) => self.held.runs,
            _ if self.is_for_statement() => table::POOL_HELD_FOR_STATEMENT,
            StepKind::Of(WaitKind::Timer) if self.held.kind == WaitKind::Limit => {
                table::LIMIT_HELD_IN_PAUSE
            }
            // It has the messages, and waits for more of them or for a timer.
            StepKind::Of(WaitKind::Set) if self.held.kind == WaitKind::Channel => {
                table::ONE_COLLECTS
            }
            _ => self.held.waits,
        }
    }

    fn advice(&self) -> Option<Advice> {
        match self.followed.end.kind {
            StepKind::Of(WaitKind::Ready) => Some(table::HOLDER_READY),
            StepKind::Unpolled => Some(table::HOLDER_UNPOLLED),
            _ => None,
        }
    }

    fn share(&self) -> f64 {
        self.share / 2.0
    }

    fn places(&self) -> Vec<Frame> {
        vec![self.at.clone(), self.followed.end.frame()]
    }

    fn headline(&self) -> String {
        let end = self.followed.end;
        let does = match end.kind {
            StepKind::Of(WaitKind::Running) => "is polled".to_owned(),
            StepKind::Of(WaitKind::Ready) => "was woken, and waits for a thread".to_owned(),
            StepKind::Unpolled => "is not polled".to_owned(),
            _ => format!("waits for {}", thing(end)),
        };
        format!("{} {} {does} at {}.", self.wait, self.held.who, end.place())
    }

    fn seen(&self) -> String {
        let followed = &self.followed;
        let (known, share) = (followed.known * 100.0, followed.share * 100.0);
        let holders = match (format!("{known:.0}"), format!("{share:.0}")) {
            (known, share) if known == "100" && share == "100" => "all for this holder".to_owned(),
            (known, share) => format!("{known} % with a known holder, {share} % of those this one"),
        };
        let mut seen = format!(
            "In {} snapshots {:.1} tasks waited here at once, {holders}.",
            self.snapshots, followed.at_once
        );
        let mut between = Vec::new();
        let last = followed.way.steps.len() - 1;
        for step in &followed.way.steps[1..last] {
            between.push(format!("{} for {}", step.place(), thing(step)));
        }
        if !between.is_empty() {
            seen = format!("{seen} In between waits {}.", between.join(", then "));
        }
        let holder = followed.way.steps.get(1);
        if let Some(holds) = holder.and_then(|step| step.holds.as_ref()) {
            seen = format!("{seen} Held: {holds}.");
        }
        seen
    }
}

/// Tasks that wait for each other.
pub(crate) struct Deadlock<'a> {
    circle: &'a Circle,
    /// Circles in the last snapshot.
    alike: usize,
    snapshots: u32,
    /// Places of all waits that end in the circle.
    places: Vec<Frame>,
    /// Tasks outside of such circles that wait for those in them, averaged over the snapshots.
    waiters: f64,
}

impl<'a> Deadlock<'a> {
    fn of(circle: &'a Circle, tasks: &'a Tasks) -> Self {
        let mut places: Vec<Frame> = circle.steps.iter().map(Step::frame).collect();
        let lines = lines(circle);
        let is_in = |step: &Step| lines.contains(&step.place());
        let mut seen = 0.0;
        for way in &tasks.ways {
            let [first, holders @ ..] = way.steps.as_slice() else {
                continue;
            };
            if holders.iter().any(is_in) {
                seen += way.seen;
                places.push(first.frame());
            }
        }
        let in_circles = tasks.circles.iter().map(|circle| circle.steps.len());
        let waits = seen / f64::from(tasks.snapshots.max(1));
        Self {
            circle,
            alike: tasks.circles.len(),
            snapshots: tasks.snapshots,
            places,
            waiters: waits - in_circles.sum::<usize>() as f64,
        }
    }
}

/// Returns the circles that nothing else can end, equal ones once.
pub(crate) fn deadlocks<'a>(facts: &'a Facts<'_>) -> Vec<Deadlock<'a>> {
    let mut found: Vec<Deadlock<'a>> = Vec::new();
    let Some(tasks) = &facts.evidence.tasks else {
        return found;
    };
    for circle in &tasks.circles {
        let is_told = found
            .iter()
            .any(|other| lines(other.circle) == lines(circle));
        if circle.is_certain && !circle.steps.is_empty() && !is_told {
            found.push(Deadlock::of(circle, tasks));
        }
    }
    found
}

/// Returns the different places of a circle.
fn lines(circle: &Circle) -> Vec<&str> {
    let mut lines: Vec<&str> = Vec::new();
    for step in &circle.steps {
        if !lines.contains(&step.place()) {
            lines.push(step.place());
        }
    }
    lines
}

impl Sighting for Deadlock<'_> {
    fn row(&self) -> &'static Row {
        let mut steps = self.circle.steps.iter();
        if steps.all(|step| step.kind == StepKind::Of(WaitKind::Queue)) {
            table::CIRCLE_OF_CHANNELS
        } else {
            table::CIRCLE
        }
    }

    fn places(&self) -> Vec<Frame> {
        self.places.clone()
    }

    fn headline(&self) -> String {
        let waiters = self.waiters.round();
        let waiters = if waiters > 1.0 {
            format!(", and {} more for them", figures::count(waiters))
        } else if waiters > 0.0 {
            ", and another one for them".to_owned()
        } else {
            String::new()
        };
        format!(
            "Deadlock: {} tasks wait for each other, at {}{waiters}.",
            self.circle.steps.len(),
            lines(self.circle).join(" and ")
        )
    }

    fn seen(&self) -> String {
        let alike = match self.alike {
            1 => "1 such circle is".to_owned(),
            alike => format!("{alike} such circles are"),
        };
        format!("{alike} in the last of {} snapshots.", self.snapshots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{Evidence, Way};
    use crate::finding::{Finding, Level};
    use crate::rules::told;
    use crate::testing::{both_sides, evidence, place, route};
    use crate::thresholds::MUCH_OF_ROUTE;

    fn look(evidence: &Evidence) -> Vec<Finding> {
        let facts = Facts::of(evidence);
        let mut found = told(of_requests(&facts));
        found.extend(told(of_tasks(&facts)));
        found.extend(told(deadlocks(&facts)));
        found
    }

    fn judge(evidence: &Evidence) -> Vec<Finding> {
        crate::rules::judge(&Facts::of(evidence))
    }

    const LOCK: &str = "shop::issue (src/issue.rs:51)";
    const SLEEP: &str = "shop::wait_for_turn (src/issue.rs:36)";

    fn step(at: &str, kind: &str, waits_for: &str) -> Step {
        Step {
            task: "shop::main".to_owned(),
            at: Some(at.to_owned()),
            kind: StepKind::named(kind),
            waits_for: waits_for.to_owned(),
            ..Step::default()
        }
    }

    fn way(seen: f64, ends: u64, steps: &[Step]) -> Way {
        Way {
            seen,
            ends,
            steps: steps.to_vec(),
        }
    }

    fn tasks(ways: Vec<Way>) -> Tasks {
        Tasks {
            snapshots: 10,
            ways,
            ..Tasks::default()
        }
    }

    /// Returns ten requests in flight, of which this share waits, and its wait in the tasks.
    fn waiting(leaf: &str, share: f64, ways: Vec<Way>) -> Evidence {
        let mut evidence = evidence(
            &[route("GET /issue", 10.0, 100)],
            &[
                place("GET /issue", &[LOCK, leaf], 10.0 * share),
                place("GET /issue", &["(running)"], 10.0 - 10.0 * share),
            ],
        );
        evidence.tasks = Some(tasks(ways));
        evidence
    }

    fn locked() -> Vec<Way> {
        let lock = step("shop::issue (web/src/issue.rs:51)", "lock", "a lock");
        let mut holder = step(SLEEP, "timer", "a timer");
        holder.holds = Some("`guard`, MutexGuard<Limiter>".to_owned());
        vec![way(50.0, 10, &[lock, holder])]
    }

    #[test]
    fn a_lock_is_told_with_what_its_holder_waits_for() {
        let with = |share| waiting("tokio::sync::Mutex::lock", share, locked());
        both_sides(look, MUCH_OF_ROUTE, with);
        let found = judge(&with(0.9));
        assert_eq!(found.len(), 1, "it is told once: {found:?}");
        let headline = &found[0].headline;
        assert!(headline.contains(LOCK), "{headline}");
        let end = format!("Its holder waits for a timer at {SLEEP}.");
        assert!(headline.ends_with(&end), "{headline}");
        assert!(
            found[0]
                .seen
                .contains("Held: `guard`, MutexGuard<Limiter>."),
            "{found:?}"
        );
        // Without a holder, the await profile alone has to tell.
        let unknown = vec![way(50.0, 50, &[step(LOCK, "lock", "a lock")])];
        assert!(look(&waiting("tokio::sync::Mutex::lock", 0.9, unknown)).is_empty());
    }

    #[test]
    fn a_chain_is_told_with_what_is_in_between() {
        let lock = step(LOCK, "lock", "a lock");
        let pool = step(
            "shop::query (src/query.rs:9)",
            "pool",
            "a connection of a pool",
        );
        let mut end = step(
            "shop::export (src/export.rs:4)",
            "network",
            "the other end of a socket",
        );
        end.through = vec!["sqlx_postgres::connection".to_owned()];
        let ways = vec![way(50.0, 10, &[lock, pool, end])];
        let found = look(&waiting("tokio::sync::Mutex::lock", 0.9, ways)).remove(0);
        assert!(
            found.headline.contains("at shop::export (src/export.rs:4)"),
            "{found:?}"
        );
        assert!(
            found
                .seen
                .contains("shop::query (src/query.rs:9) for a connection"),
            "{found:?}"
        );
    }

    #[test]
    fn a_task_that_answers_in_turn_is_told_and_one_for_each_request_is_not() {
        let answers = |tasks: u64| {
            let asks = step(LOCK, "channel", "an answer of another task");
            let asked = step(SLEEP, "timer", "a timer");
            vec![
                way(10.0, tasks, &[asks.clone(), asked]),
                way(70.0, 70, &[asks]),
            ]
        };
        let oneshot = "tokio::sync::oneshot::Receiver";
        let found = look(&waiting(oneshot, 0.9, answers(10)));
        assert_eq!(found[0].kind, "one_task");
        for (number, who) in [(80, "a task for each"), (40, "four workers")] {
            let found = look(&waiting(oneshot, 0.9, answers(number)));
            assert!(found.is_empty(), "{who}: {found:?}");
        }
    }

    #[test]
    fn a_task_that_answers_once_it_has_enough_is_told_as_that() {
        let ends = |kind: &str| {
            let asks = step(LOCK, "channel", "an answer of another task");
            let ways = vec![way(80.0, 10, &[asks, step(SLEEP, kind, "several things")])];
            look(&waiting("tokio::sync::oneshot::Receiver", 0.9, ways)).remove(0)
        };
        let collects = ends("set");
        assert_eq!(collects.level, Level::Bound);
        assert!(collects.fix.contains("before the loop"), "{collects:?}");
        assert_eq!(ends("timer").level, Level::Fault);
    }

    #[test]
    fn a_permit_that_is_kept_in_a_pause_is_told_as_that() {
        let fix = |kind: &str| {
            let acquire = step(LOCK, "limit", "a permit of a semaphore");
            let ways = vec![way(80.0, 80, &[acquire, step(SLEEP, kind, "something")])];
            look(&waiting("tokio::sync::Semaphore::acquire", 0.9, ways))
                .remove(0)
                .fix
        };
        assert!(fix("timer").contains("before the pause"));
        assert!(!fix("network").contains("pause"));
    }

    #[test]
    fn a_pool_is_a_bound_if_its_connections_are_at_work_and_a_fault_if_not() {
        let level = |kind: &str, through: &str| {
            let pool = step(LOCK, "pool", "a connection of a pool");
            let mut end = step(SLEEP, kind, "something");
            end.through = vec![through.to_owned()];
            let leaf = "(waiting for a connection of the pool)";
            look(&waiting(leaf, 0.9, vec![way(50.0, 50, &[pool, end])]))
                .remove(0)
                .level
        };
        assert_eq!(level("network", "sqlx_postgres::connection"), Level::Bound);
        assert_eq!(level("timer", "tokio::time::sleep"), Level::Fault);
    }

    #[test]
    fn tasks_of_a_process_without_requests_are_judged_alone() {
        let of = |waiters: f64| {
            let lock = step(LOCK, "lock", "a lock");
            let ways = vec![way(
                waiters * 10.0,
                10,
                &[lock, step(SLEEP, "timer", "a timer")],
            )];
            Evidence {
                tasks: Some(tasks(ways)),
                ..Evidence::default()
            }
        };
        both_sides(look, TASKS_AT_ONCE, of);
        let found = look(&of(4.0)).remove(0);
        assert!(
            found
                .headline
                .starts_with("4.0 tasks at once wait for a lock"),
            "{found:?}"
        );
    }

    #[test]
    fn a_circle_is_a_deadlock_if_nothing_else_can_end_it() {
        let of = |is_certain, kind| {
            let steps = vec![step(LOCK, "lock", "a lock"), step(SLEEP, kind, "it")];
            let circle = Circle { is_certain, steps };
            Evidence {
                tasks: Some(Tasks {
                    circles: vec![circle.clone(), circle],
                    ..tasks(Vec::new())
                }),
                ..Evidence::default()
            }
        };
        let found = look(&of(true, "lock"));
        assert_eq!(found.len(), 1, "equal ones once: {found:?}");
        assert!(
            found[0].headline.starts_with("Deadlock: 2 tasks"),
            "{found:?}"
        );
        assert!(look(&of(false, "lock")).is_empty());
        assert!(look(&of(true, "queue"))[0].fix.contains("same order"));
    }

    /// Reported of two actors that sent to each other: their advice was that of locks.
    #[test]
    fn a_circle_of_channels_has_their_advice() {
        let steps = vec![step(LOCK, "queue", "room"), step(SLEEP, "queue", "room")];
        let evidence = Evidence {
            tasks: Some(Tasks {
                circles: vec![Circle {
                    is_certain: true,
                    steps,
                }],
                ..tasks(Vec::new())
            }),
            ..Evidence::default()
        };
        let found = look(&evidence);
        assert!(found[0].fix.contains("try_send"), "{found:?}");
        assert!(found[0].seen.contains("1 such circle is"), "{found:?}");
    }

    /// Reported of a dispatcher and its workers: who waited for them was told as two more faults, and the workers outside of the
    /// circle were not counted.
    #[test]
    fn whoever_waits_for_a_circle_is_counted_and_told_with_it() {
        const SUBMIT: &str = "shop::submit (src/flow.rs:71)";
        const WORK: &str = "shop::work (src/flow.rs:39)";
        const HAND_OUT: &str = "shop::hand_out (src/flow.rs:61)";
        let full = |at| step(at, "queue", "room in a channel");
        let steps = vec![full(HAND_OUT), full(WORK)];
        let to_circle = |at, seen, next| way(seen, 10, &[full(at), full(next)]);
        let send = [SUBMIT, "tokio::sync::mpsc::Sender::send"];
        let mut route = route("job", 60.0, 0);
        route.standstill = 5.0;
        let mut evidence = evidence(&[route], &[place("job", &send, 60.0)]);
        evidence.tasks = Some(Tasks {
            circles: vec![Circle {
                is_certain: true,
                steps,
            }],
            ..tasks(vec![
                way(600.0, 10, &[full(SUBMIT), full(HAND_OUT), full(WORK)]),
                to_circle(WORK, 30.0, HAND_OUT),
                to_circle(HAND_OUT, 10.0, WORK),
                to_circle(WORK, 10.0, HAND_OUT),
            ])
        });
        let found = judge(&evidence);
        assert_eq!(found.len(), 1, "{found:?}");
        let end = format!("at {HAND_OUT} and {WORK}, and 63 more for them.");
        assert!(found[0].headline.ends_with(&end), "{found:?}");
    }
}
