//! Memory, tasks or connections become more all the time, or descriptors run out.

use ecosystem::{PartMeaning, WaitKind, figures};

use super::table;
use crate::evidence::{Evidence, Frame, Memory, Part, Spawned, TaskSet};
use crate::facts::Facts;
use crate::finding::{Row, Sighting};
use crate::threads::seen::{Inside, Spot, inner_passes, most_frequent, own, place};
use crate::thresholds::{
    DESCRIPTORS, GROWING_MEMORY, MORE, MUCH_OF_ALL, SET_GROWS, SET_TASKS, SPAWNED_LEAST,
    SPAWNED_MOST,
};
use crate::waiting::Waiting;

/// Memory that grows so much that it is no warming up.
pub(crate) struct GrowingMemory {
    /// Bytes by which it grows each second.
    each_second: f64,
    /// The route at which most requests in flight are, if their clients have not taken the last piece of the answer.
    slow_clients: Option<String>,
    /// The line that allocated most of the memory that stayed, and its share.
    kept: Option<(String, f64)>,
    /// A container of tasks' handles that has more and more of them, with the number of tasks that have not ended.
    finished: Option<(TaskSet, i64)>,
}

pub(crate) fn memory(facts: &Facts<'_>) -> Option<GrowingMemory> {
    let memory = facts.evidence.memory.as_ref()?;
    let least = GROWING_MEMORY.max(memory.live.from / 10);
    // Tasks that become more take memory, and are told as that.
    if !memory.live.rises_by_more_than(least) || become_more(memory.tasks) {
        return None;
    }
    let slow_clients = facts.crowded(WaitKind::Client).next();
    Some(GrowingMemory {
        each_second: memory.live.growth() as f64 / memory.seconds.max(f64::MIN_POSITIVE),
        slow_clients: slow_clients.map(|place| place.route.clone()),
        kept: most_kept(memory),
        finished: finished(facts.evidence, memory),
    })
}

/// Returns the container of tasks' handles that has most, if it has more and more of them, and more than there are tasks: the
/// others have ended, and nobody has taken their results.
fn finished(evidence: &Evidence, memory: &Memory) -> Option<(TaskSet, i64)> {
    // The one with most tasks comes first.
    let set = evidence.tasks.as_ref()?.sets.first()?;
    let tasks = i64::try_from(set.last).ok()?;
    let is_more = set.last >= set.first + SET_GROWS && tasks >= SET_TASKS * memory.tasks.to.max(1);
    is_more.then(|| (set.clone(), memory.tasks.to))
}

impl Sighting for GrowingMemory {
    fn row(&self) -> &'static Row {
        match (&self.finished, &self.slow_clients, &self.kept) {
            (Some(_), ..) => table::MEMORY_OF_FINISHED,
            (None, Some(_), _) => table::MEMORY_OF_ANSWERS,
            (None, None, Some(_)) => table::MEMORY_OF_LINE,
            (None, None, None) => table::MEMORY_KEPT,
        }
    }

    fn headline(&self) -> String {
        let each = format!("{:.1} MiB", self.each_second / f64::from(1 << 20));
        let at = match (&self.finished, &self.slow_clients, &self.kept) {
            (Some((set, _)), ..) => format!(
                ": finished tasks stay in {}, kept at {}",
                set.value,
                set.place()
            ),
            (None, None, Some((at, _))) => format!(", at {at}"),
            _ => String::new(),
        };
        format!("Memory grows by {each} a second{at}.")
    }

    fn seen(&self) -> String {
        match (&self.finished, &self.slow_clients, &self.kept) {
            (Some((set, alive)), ..) => format!(
                "It went from {} to {} tasks within the snapshots, and {alive} tasks have not ended.",
                set.first, set.last
            ),
            (None, Some(route), _) => format!(
                "Meanwhile many requests wait for their clients to take the answer: {route}."
            ),
            (None, None, Some((_, share))) => format!(
                "By samples, {:.0} % of what was allocated meanwhile and not freed is of that line.",
                share * 100.0
            ),
            (None, None, None) => String::new(),
        }
    }
}

/// Returns the line that allocated most of the memory that stayed, with its share, if that is much.
fn most_kept(memory: &Memory) -> Option<(String, f64)> {
    let all: u64 = memory.kept.iter().map(|kept| kept.bytes).sum();
    let most = memory.kept.first()?;
    let share = most.bytes as f64 / all as f64;
    (share >= MUCH_OF_ALL).then(|| (most.at.clone(), share))
}

/// Returns whether the number of tasks rises by more than is usual.
fn become_more(tasks: Part) -> bool {
    tasks.rises_by_more_than(MORE.max(tasks.from / 5))
}

/// Tasks that only become more.
pub(crate) struct MoreTasks {
    tasks: i64,
    each_second: f64,
    /// The route that most requests are of, and the new tasks for each of them, if that is about a task or a few.
    for_each: Option<(String, f64)>,
    others: Option<Inside>,
    /// The tasks that most are of, and the number of all.
    spawned: Option<(Spawned, usize)>,
    /// The wait at which many of them are.
    waiting: Option<Waiting>,
}

pub(crate) fn tasks(facts: &Facts<'_>) -> Option<MoreTasks> {
    let memory = facts.evidence.memory.as_ref()?;
    if !become_more(memory.tasks) {
        return None;
    }
    let growth = memory.tasks.growth() as f64;
    Some(MoreTasks {
        tasks: memory.tasks.to,
        each_second: growth / memory.seconds.max(f64::MIN_POSITIVE),
        for_each: for_each_request(facts, growth),
        others: facts.other_tasks.clone(),
        spawned: most_spawned(facts.evidence),
        waiting: crowd(facts, memory.tasks.to).cloned(),
    })
}

/// Returns the wait at which many of so many tasks are.
fn crowd<'a>(facts: &'a Facts<'_>, tasks: i64) -> Option<&'a Waiting> {
    // The wait with most requests comes first.
    let most = facts.waits.first()?;
    (most.in_flight >= MUCH_OF_ALL * tasks as f64).then_some(most)
}

/// Returns the tasks that most are of, with the number of all, if one future is in many of them.
fn most_spawned(evidence: &Evidence) -> Option<(Spawned, usize)> {
    let spawned = &evidence.tasks.as_ref()?.spawned;
    let all: usize = spawned.iter().map(|spawned| spawned.last).sum();
    let most = spawned.first()?;
    (most.last as f64 >= MUCH_OF_ALL * all as f64).then(|| (most.clone(), all))
}

fn for_each_request(facts: &Facts<'_>, growth: f64) -> Option<(String, f64)> {
    let requests = facts.requests?;
    let route = requests.whole().max_by_key(|route| route.ended())?;
    let each = growth / route.ended().max(1) as f64;
    let is_most = route.ended() * 2 > requests.finished() + requests.dropped();
    if !is_most || !(SPAWNED_LEAST..=SPAWNED_MOST).contains(&each) {
        return None;
    }
    Some((route.name.clone(), each))
}

impl Sighting for MoreTasks {
    fn row(&self) -> &'static Row {
        table::TASKS
    }

    fn places(&self) -> Vec<Frame> {
        self.waiting.iter().map(Waiting::anchor).collect()
    }

    fn headline(&self) -> String {
        let mut headline = format!("The tasks become more, by {:.0} a second", self.each_second);
        if let Some((route, each)) = &self.for_each {
            headline = format!("{headline}, about {each:.1} for each {route}");
        }
        match (&self.waiting, &self.spawned, &self.others) {
            (Some(waiting), ..) => format!(
                "{headline}: {} are {} at {}.",
                figures::average(waiting.in_flight),
                waiting.wait.in_words(),
                waiting.anchor()
            ),
            (None, Some((spawned, _)), _) => format!("{headline}: {}.", spawned.label()),
            (None, None, Some(others)) => format!("{headline}: see {}.", others.most),
            (None, None, None) => format!("{headline}."),
        }
    }

    fn seen(&self) -> String {
        let seen = format!("There are {} tasks.", self.tasks);
        match (&self.spawned, &self.others) {
            (Some((spawned, all)), _) => {
                format!("{seen} {} of {all} are of that future.", spawned.last)
            }
            (None, Some(others)) => {
                format!("{seen} Tasks that are no requests run {}.", others.places)
            }
            (None, None) => seen,
        }
    }
}

/// Connections that are kept.
pub(crate) struct KeptConnections {
    address: String,
    each_second: f64,
    open: usize,
}

pub(crate) fn connections(facts: &Facts<'_>) -> Vec<KeptConnections> {
    let mut kept = Vec::new();
    let Some(connections) = &facts.evidence.connections else {
        return kept;
    };
    for peers in &connections.upstreams {
        if let Some(growth) = peers.growth
            && growth.rises_by_more_than(MORE.max(growth.from / 5))
        {
            let seconds = connections.seconds.max(f64::MIN_POSITIVE);
            kept.push(KeptConnections {
                address: peers.address.clone(),
                each_second: growth.growth() as f64 / seconds,
                open: peers.open,
            });
        }
    }
    kept
}

impl Sighting for KeptConnections {
    fn row(&self) -> &'static Row {
        table::KEPT_CONNECTIONS
    }

    fn headline(&self) -> String {
        let (address, each) = (&self.address, self.each_second);
        format!("Connections to {address} become more, by {each:.0} a second.")
    }

    fn seen(&self) -> String {
        format!("{} are open.", self.open)
    }
}

/// Descriptors that run out.
pub(crate) struct FewDescriptors {
    most_open: u64,
    limit: u64,
    are_none_left: bool,
    /// Kinds of descriptors with their number, the most frequent first.
    kinds: Vec<(String, u64)>,
    /// The folder in which most files lie, unless most descriptors are of connections.
    folder: Option<(String, u64)>,
    opened_at: Option<Spot>,
}

pub(crate) fn descriptors(facts: &Facts<'_>) -> Option<FewDescriptors> {
    let descriptors = facts.evidence.descriptors.as_ref()?;
    let is_near = descriptors.most_open as f64 >= DESCRIPTORS * descriptors.limit as f64;
    if descriptors.none_left == 0 && (!is_near || descriptors.limit == 0) {
        return None;
    }
    let mut kinds: Vec<(String, u64)> = descriptors.by_kind.clone().into_iter().collect();
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let folders = descriptors.by_folder.iter();
    let most = folders.max_by_key(|(_, count)| **count);
    let most =
        most.filter(|(_, count)| **count as f64 >= MUCH_OF_ALL * descriptors.most_open as f64);
    Some(FewDescriptors {
        most_open: descriptors.most_open,
        limit: descriptors.limit,
        are_none_left: descriptors.none_left > 0,
        kinds,
        folder: most.map(|(folder, count)| (folder.clone(), *count)),
        opened_at: opened_at(facts.evidence),
    })
}

/// Returns the line of the service that opens files, if one was seen to.
fn opened_at(evidence: &Evidence) -> Option<Spot> {
    let mut stacks = evidence.stacks();
    stacks.retain(|stack| inner_passes(stack, PartMeaning::OpensFile) && own(stack).is_some());
    let (found, _) = most_frequent(stacks.into_iter())?;
    Some(place(found.most))
}

impl Sighting for FewDescriptors {
    fn row(&self) -> &'static Row {
        table::DESCRIPTORS
    }

    fn headline(&self) -> String {
        let what = if self.are_none_left {
            "at times nothing"
        } else {
            "soon nothing"
        };
        let at = self.opened_at.as_ref();
        let at = at.map(|at| format!(". Files are opened at {at}"));
        format!(
            "{} of {} file descriptors are open: {what} can be opened or accepted{}.",
            self.most_open,
            self.limit,
            at.unwrap_or_default()
        )
    }

    fn seen(&self) -> String {
        let mut seen = Vec::new();
        let mut listed = Vec::new();
        for (kind, count) in &self.kinds {
            listed.push(format!("{kind} {count}"));
        }
        if !listed.is_empty() {
            seen.push(format!("Open by kind: {}.", listed.join(", ")));
        }
        if let Some((folder, count)) = &self.folder {
            seen.push(format!("{count} of the files lie in a folder `{folder}`."));
        }
        seen.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Evidence;
    use crate::evidence::{Connections, Descriptors, Memory, Peers, Tasks};
    use crate::finding::Finding;
    use crate::rules::{judge, told};
    use crate::testing::{self, of_threads};
    use crate::threads::Thread;
    use crate::threads::testing::{WORKER, runs};

    fn memory(evidence: &Evidence) -> Vec<Finding> {
        told(super::memory(&Facts::of(evidence)))
    }

    fn tasks(evidence: &Evidence) -> Vec<Finding> {
        told(super::tasks(&Facts::of(evidence)))
    }

    fn connections(evidence: &Evidence) -> Vec<Finding> {
        told(super::connections(&Facts::of(evidence)))
    }

    fn descriptors(evidence: &Evidence) -> Vec<Finding> {
        told(super::descriptors(&Facts::of(evidence)))
    }

    fn rises(from: i64, rise: i64) -> Part {
        Part {
            from,
            to: from + rise,
            rise,
            is_steady: true,
        }
    }

    #[test]
    fn memory_that_grows_while_clients_are_slow_is_that_of_their_answers() {
        let taken = "(response body: the client has not taken the last piece)";
        let of = |taken_late: f64| Evidence {
            memory: Some(Memory {
                seconds: 10.0,
                live: rises(0, GROWING_MEMORY + 1),
                tasks: Part::default(),
                ..Memory::default()
            }),
            ..testing::evidence(
                &[testing::route("body of GET /history", 10.0, 0)],
                &[
                    testing::place("body of GET /history", &[taken], 10.0 * taken_late),
                    testing::place(
                        "body of GET /history",
                        &["(running)"],
                        10.0 * (1.0 - taken_late),
                    ),
                ],
            )
        };
        let slow = memory(&of(MUCH_OF_ALL + 0.01));
        assert!(slow[0].seen.ends_with("body of GET /history."), "{slow:?}");
        assert!(slow[0].cause.contains("faster than its client"), "{slow:?}");
        let fast = memory(&of(MUCH_OF_ALL - 0.01));
        assert!(fast[0].cause.starts_with("Something keeps"), "{fast:?}");
    }

    #[test]
    fn finished_tasks_that_nobody_joins_are_told_on_the_right_side_of_each_threshold() {
        let of = |first: u64, last: u64, alive: i64| Evidence {
            memory: Some(Memory {
                seconds: 10.0,
                live: rises(0, 2 * GROWING_MEMORY),
                tasks: rises(alive, 0),
                ..Memory::default()
            }),
            tasks: Some(Tasks {
                sets: vec![TaskSet {
                    at: Some("shop::accept (src/accept.rs:58)".to_owned()),
                    value: "`sessions`, JoinSet<Transcript>".to_owned(),
                    first,
                    last,
                    ..TaskSet::default()
                }],
                ..Tasks::default()
            }),
            ..Evidence::default()
        };
        let is_told = |evidence: &Evidence| memory(evidence)[0].headline.contains("finished tasks");
        let many = 100 * SET_GROWS;
        assert!(is_told(&of(many - SET_GROWS, many, 5)));
        assert!(!is_told(&of(many - SET_GROWS + 1, many, 5)));
        let alive = i64::try_from(many).unwrap() / SET_TASKS;
        assert!(is_told(&of(0, many, alive)) && !is_told(&of(0, many, alive + 1)));
        let found = memory(&of(0, many, 5)).remove(0);
        assert!(
            found.headline.contains("shop::accept (src/accept.rs:58)")
                && found.fix.contains("join_next"),
            "{found:?}"
        );
    }

    #[test]
    fn growth_is_told_on_the_right_side_of_each_threshold() {
        let of = |live, tasks| Evidence {
            memory: Some(Memory {
                seconds: 10.0,
                live,
                tasks,
                ..Memory::default()
            }),
            ..Evidence::default()
        };
        let none = Part::default();
        assert!(memory(&of(rises(0, GROWING_MEMORY), none)).is_empty());
        assert!(!memory(&of(rises(0, GROWING_MEMORY + 1), none)).is_empty());
        assert!(
            memory(&of(rises(1 << 30, 100 << 20), none)).is_empty(),
            "a tenth"
        );
        assert!(tasks(&of(none, rises(0, MORE))).is_empty());
        assert!(!tasks(&of(none, rises(0, MORE + 1))).is_empty());
        assert!(tasks(&of(none, rises(1000, 200))).is_empty(), "a fifth");
        let peak = Part {
            is_steady: false,
            ..rises(0, 1 << 30)
        };
        assert!(memory(&of(peak, none)).is_empty(), "a peak that is kept");
        assert!(tasks(&of(none, peak)).is_empty(), "clients that came");
        let upstream = |growth| Evidence {
            connections: Some(Connections {
                seconds: 10.0,
                upstreams: vec![Peers {
                    growth: Some(growth),
                    ..Peers::default()
                }],
                ..Connections::default()
            }),
            ..Evidence::default()
        };
        assert!(connections(&upstream(rises(0, MORE))).is_empty());
        assert!(!connections(&upstream(rises(0, MORE + 1))).is_empty());
    }

    #[test]
    fn tasks_are_put_down_to_the_route_that_most_requests_are_of() {
        let told = |each: f64, others| {
            #[allow(clippy::cast_possible_truncation)]
            let part = rises(0, (each * 2000.0).round() as i64);
            let routes = [
                crate::testing::route("POST /signup", 0.1, 2000),
                crate::testing::route("GET /", 0.1, others),
            ];
            let mut evidence = crate::testing::evidence(&routes, &[]);
            evidence.memory = Some(Memory {
                seconds: 10.0,
                tasks: part,
                ..Memory::default()
            });
            tasks(&evidence)
                .remove(0)
                .headline
                .contains("for each POST /signup")
        };
        assert!(told(SPAWNED_LEAST, 1999) && !told(SPAWNED_LEAST * 0.99, 1999));
        assert!(told(SPAWNED_MOST, 1999) && !told(SPAWNED_MOST * 1.01, 1999));
        assert!(!told(1.0, 2000));
    }

    #[test]
    fn requests_that_pile_up_before_a_busy_thread_are_its_consequence() {
        let told = |function: &str| {
            let worker = Thread::of("tokio worker", vec![runs(100, &[WORKER, function])]);
            let mut evidence = of_threads(vec![worker], 0.5);
            evidence.memory = Some(Memory {
                seconds: 5.0,
                live: rises(0, 2 * GROWING_MEMORY),
                tasks: rises(0, 2 * MORE),
                ..Memory::default()
            });
            let found = judge(&Facts::of(&evidence));
            let is_told = |kind| found.iter().any(|finding| finding.kind == kind);
            (is_told("memory"), is_told("tasks"))
        };
        assert_eq!(told("shop::compress"), (false, false));
        assert_eq!(told("tokio::runtime::park"), (false, true));
    }

    #[test]
    fn descriptors_are_told_from_a_share_of_their_limit() {
        let of = |most_open, none_left| Evidence {
            descriptors: Some(Descriptors {
                limit: 1000,
                most_open,
                none_left,
                by_kind: [("files".to_owned(), 700), ("sockets".to_owned(), 120)].into(),
                by_folder: [("parts".to_owned(), 400), ("log".to_owned(), 300)].into(),
            }),
            ..Evidence::default()
        };
        assert!(descriptors(&of(799, 0)).is_empty());
        let found = descriptors(&of(800, 0)).remove(0);
        assert!(
            found.seen.starts_with(
                "Open by kind: files 700, sockets 120. 400 of the files lie in a folder `parts`."
            ),
            "{found:?}"
        );
        let found = descriptors(&of(1001, 0)).remove(0);
        assert!(
            !found.seen.contains("folder"),
            "under two fifths: {found:?}"
        );
        assert!(!descriptors(&of(10, 1)).is_empty());
    }
}
