//! Waits followed to their end: from what is waited for to its holder, to the holder's own wait, and so on.
//!
//! The await profile says how much time a wait takes, and snapshots of all tasks say who holds what it is for.

use ecosystem::{WaitKind, figures};

use crate::evidence::{Circle, Evidence, Requests, Step, Tasks, Way};
use crate::finding::{Finding, Level, Words};
use crate::thresholds::{
    IN_A_ROW_WEIGHT, LINES_APART, MOST_OF_ROUTE, ONE_TASK_MS, ONE_TASK_QUEUE, ONE_TASK_WEIGHT,
    TASKS_AT_ONCE, TO_ITS_END_WEIGHT, WAIT_WEIGHT, WAITERS_HOLD_WEIGHT, WAITERS_OF_ONE,
};
use crate::waiting::{Waiting, parts};

/// Endpoint that shows tasks.
const SEE: &str = "/debug/tasks";

/// What is known of those who hold what is waited for, by the kind of the wait.
struct Held {
    /// Kind of the wait.
    kind: WaitKind,
    /// Kind of the finding.
    found: &'static str,
    /// The holder, as the subject of a sentence.
    who: &'static str,
    /// Usual cause and remedy if the holder waits for something else.
    waits: (&'static str, &'static str),
    /// Usual cause and remedy if a thread polls the holder.
    runs: (&'static str, &'static str),
}

const HELD: &[Held] = &[
    Held {
        kind: WaitKind::Lock,
        found: "lock",
        who: "Its holder",
        waits: (
            "The guard is held across that `.await`, so one request at a time gets past.",
            "Drop the guard before that `.await`: take what is needed out of it first.",
        ),
        runs: (
            "The holder does that work with the guard in hand.",
            "Do it before the lock is taken, or after the guard is dropped.",
        ),
    },
    Held {
        kind: WaitKind::Pool,
        found: "pool",
        who: "A holder of one",
        waits: (
            "A connection stays lent while its holder awaits something else.",
            "Give it back before that `.await`: end the transaction, and drop the connection.",
        ),
        runs: (
            "A connection stays lent while its holder does that work.",
            "Give it back first: read all rows, and drop the connection.",
        ),
    },
    Held {
        kind: WaitKind::Limit,
        found: "limit",
        who: "A holder of a permit",
        waits: (
            "Permits are kept during that wait, and no more are let in.",
            "Raise the limit if more of that may go on at once; otherwise make that wait shorter.",
        ),
        runs: (
            "Permits are kept during that work, and no more are let in.",
            "Take the permit only for what has to be limited, and do the work outside of it.",
        ),
    },
    Held {
        kind: WaitKind::Channel,
        found: "one_task",
        who: "The one task that answers",
        waits: (
            "The task awaits this for each message before it takes the next one.",
            "Spawn the work for each message, or keep several at a time (`buffer_unordered`).",
        ),
        runs: (
            "The task does this work for each message, and one thread does all of it.",
            "Have several such tasks, or do the work in the tasks that ask.",
        ),
    },
    Held {
        kind: WaitKind::Queue,
        found: "queue",
        who: "Its receiver",
        waits: (
            "The receiver awaits this for each message before it takes the next one.",
            "Keep several at a time (`buffer_unordered`), or send less: a longer queue only waits longer.",
        ),
        runs: (
            "The receiver does this work for each message, and one thread does all of it.",
            "Have several receivers, or send less: a longer queue only waits longer.",
        ),
    },
];

/// Cause and remedy of a pool whose connections a database keeps.
const STATEMENT: (&str, &str) = (
    "That statement takes long, and keeps the connections.",
    "Run it with `EXPLAIN ANALYZE`: a scan of a whole table wants an index. Only then make the pool larger.",
);

/// Cause and remedy of a holder that nobody polls.
const UNPOLLED: (&str, &str) = (
    "The holder's future is kept and not polled, so it never lets go.",
    "Poll it together with what is awaited instead, or drop it.",
);

/// Cause and remedy of a holder that was woken.
const READY: (&str, &str) = (
    "The holder could go on, and no thread polls it.",
    "Find what keeps the worker threads busy, and move it to blocking threads.",
);

pub(crate) fn look(evidence: &Evidence) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some(tasks) = &evidence.tasks else {
        return findings;
    };
    for circle in &tasks.circles {
        findings.extend(deadlock(circle, tasks, &findings));
    }
    match &evidence.requests {
        Some(requests) if requests.in_flight > 0.0 => {
            for waiting in Waiting::all(evidence) {
                findings.extend(of_requests(&waiting, requests, tasks));
            }
        }
        _ => findings.extend(of_tasks(tasks)),
    }
    findings
}

/// Waits at one line, followed to where most of them end.
struct Followed<'a> {
    /// Waits at once at this line, averaged over the snapshots.
    at_once: f64,
    /// Share of them whose holder is known.
    known: f64,
    /// Share of those with a known holder that end at [`way`](Self::way)'s end.
    share: f64,
    /// Different tasks at the ends, averaged over the snapshots.
    holders: f64,
    /// The most frequent way to that end.
    way: &'a Way,
    end: &'a Step,
}

impl<'a> Followed<'a> {
    /// Follows the ways that begin at a line with a wait of this kind.
    fn of(tasks: &'a Tasks, is_here: impl Fn(&Step) -> bool) -> Option<Self> {
        let (mut all, mut known, mut holders) = (0.0, 0.0, 0);
        let mut ends: Vec<(&Step, f64, &Way)> = Vec::new();
        for way in &tasks.ways {
            if !way.first().is_some_and(&is_here) {
                continue;
            }
            all += way.seen;
            let Some(end) = way.end() else { continue };
            known += way.seen;
            holders += way.ends;
            let is_same = |other: &Step| other.place() == end.place() && other.kind == end.kind;
            match ends.iter_mut().find(|(other, ..)| is_same(other)) {
                // The most frequent way comes first.
                Some((_, sum, _)) => *sum += way.seen,
                None => ends.push((end, way.seen, way)),
            }
        }
        let (end, seen, way) = ends.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let snapshots = f64::from(tasks.snapshots.max(1));
        Some(Self {
            at_once: all / snapshots,
            known: known / all,
            share: seen / known,
            holders: holders as f64 / snapshots,
            way,
            end,
        })
    }

    /// Returns whether many wait for one.
    fn is_for_one(&self) -> bool {
        self.at_once >= WAITERS_OF_ONE * self.holders
    }

    /// Returns whether the end is an answer of a database.
    fn is_statement(&self) -> bool {
        match self.end.wait() {
            Some(wait) => matches!(wait.kind, WaitKind::Database | WaitKind::Network),
            None => self.end.kind == WaitKind::Network.name(),
        }
    }

    /// Returns what the holder at the end does, as a sentence: `Its holder waits for a timer at read (src/read.rs:9).`
    fn headline(&self, held: &Held) -> String {
        let does = match self.end.kind.as_str() {
            "running" => "is polled".to_owned(),
            "ready" => "was woken, and waits for a thread".to_owned(),
            "unpolled" => "is not polled".to_owned(),
            _ => format!("waits for {}", thing(self.end)),
        };
        format!("{} {does} at {}.", held.who, self.end.place())
    }

    /// Returns the evidence in sentences.
    fn seen(&self, tasks: &Tasks) -> String {
        let mut seen = format!(
            "In {} snapshots of all tasks {:.1} waited here at once. {:.0} % have a known holder, and of those {:.0} % end there.",
            tasks.snapshots,
            self.at_once,
            self.known * 100.0,
            self.share * 100.0
        );
        let mut between = Vec::new();
        let last = self.way.steps.len() - 1;
        for step in &self.way.steps[1..last] {
            between.push(format!("{} for {}", step.place(), thing(step)));
        }
        if !between.is_empty() {
            seen = format!("{seen} In between waits {}.", between.join(", then "));
        }
        let holds = self.way.steps.get(1).and_then(|step| step.holds.as_ref());
        if let Some(holds) = holds {
            seen = format!("{seen} Held: {holds}.");
        }
        seen
    }

    fn advice(&self, held: &Held) -> (&'static str, &'static str) {
        match self.end.kind.as_str() {
            "running" => held.runs,
            "ready" => READY,
            "unpolled" => UNPOLLED,
            _ if held.kind == WaitKind::Pool && self.is_statement() => STATEMENT,
            _ => held.waits,
        }
    }

    fn words(&self, held: &Held, headline: &str, tasks: &Tasks) -> Words {
        let (cause, fix) = self.advice(held);
        Words {
            headline: format!("{headline} {}", self.headline(held)),
            seen: self.seen(tasks),
            cause: cause.to_owned(),
            fix: fix.to_owned(),
        }
    }

    /// Returns the level of a finding. Limits and queues may be on purpose, and connections that a database keeps are at work.
    fn level(&self, held: &Held) -> Level {
        match held.kind {
            WaitKind::Limit | WaitKind::Queue => Level::Bound,
            WaitKind::Pool if self.is_statement() => Level::Bound,
            _ => Level::Fault,
        }
    }
}

/// Returns the thing that a step waits for, as the library calls it.
fn thing(step: &Step) -> String {
    match step.wait() {
        Some(wait) if !wait.thing().is_empty() => wait.thing().to_owned(),
        _ => step.waits_for.clone(),
    }
}

/// Returns a finding on requests that wait at a line, if the tasks show who holds what they wait for.
fn of_requests(waiting: &Waiting, requests: &Requests, tasks: &Tasks) -> Option<Finding> {
    let held = HELD.iter().find(|held| held.kind == waiting.kind())?;
    let weight = match held.kind {
        WaitKind::Lock | WaitKind::Pool if waiting.is_much() && waiting.is_queue() => WAIT_WEIGHT,
        WaitKind::Limit | WaitKind::Queue if waiting.share >= MOST_OF_ROUTE => IN_A_ROW_WEIGHT,
        WaitKind::Channel if is_for_one_answer(waiting, requests) => ONE_TASK_WEIGHT,
        _ => return None,
    };
    let line = waiting.place().line()?;
    let followed = Followed::of(tasks, |step| {
        step.kind == held.kind.name() && step.at.as_deref().is_some_and(|at| is_same(at, line))
    })?;
    // Of many holders, each may have a waiter of its own.
    if matches!(held.kind, WaitKind::Channel | WaitKind::Queue) && !followed.is_for_one() {
        return None;
    }
    let words = followed.words(held, &waiting.headline(), tasks);
    let weight = weight + waiting.share / 2.0 + TO_ITS_END_WEIGHT;
    let finding = Finding::of(followed.level(held), held.found, weight, SEE, words);
    Some(
        finding
            .at(waiting.place().anchor())
            .at(followed.end.place()),
    )
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

/// Returns findings on tasks of a process whose requests are not seen.
fn of_tasks(tasks: &Tasks) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    let mut done: Vec<(&str, &str)> = Vec::new();
    for way in &tasks.ways {
        let Some(first) = way.first() else { continue };
        let Some(at) = &first.at else { continue };
        let Some(held) = HELD.iter().find(|held| held.kind.name() == first.kind) else {
            continue;
        };
        // News are for all who wait, and come when they come.
        let is_answer = first.wait().is_some_and(|wait| wait.is_answer_of_task());
        if held.kind == WaitKind::Channel && !is_answer {
            continue;
        }
        if done.contains(&(at, &first.kind)) {
            continue;
        }
        done.push((at, &first.kind));
        let is_here = |step: &Step| step.at.as_ref() == Some(at) && step.kind == first.kind;
        let Some(followed) = Followed::of(tasks, is_here) else {
            continue;
        };
        if followed.at_once < TASKS_AT_ONCE || !followed.is_for_one() {
            continue;
        }
        let headline = format!(
            "{} tasks at once wait for {} at {at}.",
            figures::average(followed.at_once),
            thing(first)
        );
        let words = followed.words(held, &headline, tasks);
        let level = followed.level(held);
        let finding = Finding::of(level, held.found, WAIT_WEIGHT, SEE, words);
        findings.push(finding.at(at).at(followed.end.place()));
    }
    findings
}

/// Returns whether two labels are of one line. A statement of several lines may have the number of any of them.
fn is_same(at: &str, line: &str) -> bool {
    let (Some((function, file, number)), Some((other, other_file, other_number))) =
        (parts(at), parts(line))
    else {
        return false;
    };
    let is_file = is_end_of(file, other_file) || is_end_of(other_file, file);
    let last = |path: &str| path.rsplit("::").next().map(str::to_owned);
    let is_near = last(function) == last(other) && number.abs_diff(other_number) <= LINES_APART;
    is_file && (number == other_number || is_near)
}

/// Returns whether a path is another one without folders in front of it.
fn is_end_of(path: &str, whole: &str) -> bool {
    let before = whole.strip_suffix(path);
    before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

/// Returns a finding on tasks that wait for each other, unless it was told of others at the same lines.
fn deadlock(circle: &Circle, tasks: &Tasks, told: &[Finding]) -> Option<Finding> {
    let is_possible = circle.is_certain && !circle.steps.is_empty();
    let mut lines: Vec<&str> = Vec::new();
    for step in &circle.steps {
        if !lines.contains(&step.place()) {
            lines.push(step.place());
        }
    }
    let headline = format!(
        "Deadlock: {} tasks wait for each other, at {}.",
        circle.steps.len(),
        lines.join(" and ")
    );
    if !is_possible || told.iter().any(|other| other.headline == headline) {
        return None;
    }
    let alike = tasks.circles.len();
    let words = Words {
        headline,
        seen: format!("Tasks in circles: {alike} circles in the last of {} snapshots.", tasks.snapshots),
        cause: "Each holds what the next one waits for.".to_owned(),
        fix: "Take what is locked in the same order everywhere, or give the first back before the second is taken."
            .to_owned(),
    };
    let weight = WAITERS_HOLD_WEIGHT + TO_ITS_END_WEIGHT;
    let mut finding = Finding::fault("waits_for_itself", weight, SEE, words);
    for line in lines {
        finding = finding.at(line);
    }
    Some(finding)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::judge;
    use crate::testing::{both_sides, evidence, place, route};
    use crate::thresholds::{MUCH_OF_ROUTE, QUEUE};

    const LOCK: &str = "shop::issue (src/issue.rs:51)";
    const SLEEP: &str = "shop::wait_for_turn (src/issue.rs:36)";

    fn step(at: &str, kind: &str, waits_for: &str) -> Step {
        Step {
            task: "shop::main".to_owned(),
            at: Some(at.to_owned()),
            kind: kind.to_owned(),
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
        assert!(
            look(&waiting(oneshot, 0.9, answers(80))).is_empty(),
            "a task for each"
        );
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
        let of = |is_certain| {
            let steps = vec![step(LOCK, "lock", "a lock"), step(SLEEP, "lock", "a lock")];
            let circle = Circle { is_certain, steps };
            Evidence {
                tasks: Some(Tasks {
                    circles: vec![circle.clone(), circle],
                    ..tasks(Vec::new())
                }),
                ..Evidence::default()
            }
        };
        let found = look(&of(true));
        assert_eq!(found.len(), 1, "equal ones once: {found:?}");
        assert!(
            found[0].headline.starts_with("Deadlock: 2 tasks"),
            "{found:?}"
        );
        assert!(look(&of(false)).is_empty());
    }

    #[test]
    fn a_line_is_the_same_in_both_instruments() {
        let at = "shop::Tracker::issue (src/issue.rs:51)";
        assert!(is_same("shop::issue (web/src/issue.rs:51)", at));
        assert!(
            is_same("shop::issue (web/src/issue.rs:53)", at),
            "a statement of several lines"
        );
        assert!(!is_same("shop::other (web/src/issue.rs:53)", at));
        assert!(!is_same("shop::issue (src/reissue.rs:51)", at));
        assert!(TASKS_AT_ONCE >= QUEUE);
    }
}
