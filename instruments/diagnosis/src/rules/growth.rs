//! Memory, tasks or connections become more all the time, or descriptors run out.

use ecosystem::{PartMeaning, WaitKind};

use crate::evidence::{Evidence, Memory, Part, Spawned};
use crate::finding::{Finding, Words};
use crate::threads::seen::{inner_passes, most_frequent, own, place};
use crate::thresholds::{
    CONNECTIONS_WEIGHT, DESCRIPTORS, DESCRIPTORS_WEIGHT, GROWING_MEMORY, MEMORY_WEIGHT, MORE,
    MUCH_OF_ALL, SPAWNED_LEAST, SPAWNED_MOST, TASKS_WEIGHT,
};

/// Memory that grows so much that it is no warming up.
pub(crate) fn memory(evidence: &Evidence) -> Vec<Finding> {
    let Some(memory) = &evidence.memory else {
        return Vec::new();
    };
    let least = GROWING_MEMORY.max(memory.live.from / 10);
    // Tasks that become more take memory, and are told as that.
    if !memory.live.rises_by_more_than(least) || become_more(memory.tasks) {
        return Vec::new();
    }
    let words = match slow_clients(evidence) {
        Some(route) => Words {
            headline: format!("Memory: {}.", memory.says),
            seen: format!("Meanwhile many requests wait for their clients to take the answer: {route}."),
            cause: "An answer is made faster than its client takes it, and lies in between: in a channel without a bound, \
                    or whole."
                .to_owned(),
            fix: "Send it through a bounded channel, or make the next piece when the last one is taken. If that is done, \
                  take a heap profile, which says who keeps the memory."
                .to_owned(),
        },
        None => match most_kept(memory) {
            Some((at, share)) => Words {
                headline: format!("Memory grows at {at}: {}.", memory.says),
                seen: format!(
                    "Of what was allocated meanwhile and not freed, {:.0} % is of that line, by samples.",
                    share * 100.0
                ),
                cause: "What that line makes is kept without a bound: in a map, a queue or a set.".to_owned(),
                fix: "Bound what keeps it, or remove what is done.".to_owned(),
            },
            None => Words {
                headline: format!("Memory: {}.", memory.says),
                cause: "Something keeps what it is given, without a bound.".to_owned(),
                fix: "Take a heap profile, which says who keeps it, and bound that.".to_owned(),
                ..Words::default()
            },
        },
    };
    let see = "/debug/pprof/heap, /debug/heap, /debug/memory";
    vec![Finding::fault("memory", MEMORY_WEIGHT, see, words)]
}

/// Returns the line that allocated most of the memory that stayed, with its share, if that is much.
fn most_kept(memory: &Memory) -> Option<(&str, f64)> {
    let all: u64 = memory.kept.iter().map(|kept| kept.bytes).sum();
    let most = memory.kept.first()?;
    let share = most.bytes as f64 / all as f64;
    (share >= MUCH_OF_ALL).then_some((&most.at, share))
}

/// Returns the route at which most requests in flight are, if their clients have not taken the last piece of the answer.
fn slow_clients(evidence: &Evidence) -> Option<&str> {
    let requests = evidence.requests.as_ref()?;
    let place = requests.crowded(WaitKind::Client).next()?;
    Some(&place.route)
}

/// Returns whether the number of tasks rises by more than is usual.
fn become_more(tasks: Part) -> bool {
    tasks.rises_by_more_than(MORE.max(tasks.from / 5))
}

/// Tasks that only become more.
pub(crate) fn tasks(evidence: &Evidence) -> Vec<Finding> {
    let Some(memory) = &evidence.memory else {
        return Vec::new();
    };
    if !become_more(memory.tasks) {
        return Vec::new();
    }
    let growth = memory.tasks.growth() as f64;
    let mut headline = format!(
        "The tasks become more, by {:.0} a second",
        growth / memory.seconds.max(f64::MIN_POSITIVE)
    );
    if let Some((route, each)) = for_each_request(evidence, growth) {
        headline = format!("{headline}, about {each:.1} for each {route}");
    }
    let mut seen = format!("There are {} tasks.", memory.tasks.to);
    if let Some((spawned, all)) = most_spawned(evidence) {
        headline = format!("{headline}: {}", spawned.label());
        seen = format!("{seen} {} of {all} are of that future.", spawned.last);
    } else if let Some(others) = evidence.other_tasks() {
        headline = format!("{headline}: see {}", others.most);
        seen = format!("{seen} Tasks that are no requests run {}.", others.places);
    }
    let words = Words {
        headline: format!("{headline}."),
        seen,
        cause: "Something spawns tasks that do not end, or not as soon as others come.".to_owned(),
        fix: "Look for a `spawn` in a handler whose task goes on when the client has left, or has no bound.".to_owned(),
    };
    vec![Finding::fault(
        "tasks",
        TASKS_WEIGHT,
        "/debug/memory",
        words,
    )]
}

/// Returns the tasks that most are of, with the number of all, if one future is in many of them.
fn most_spawned(evidence: &Evidence) -> Option<(&Spawned, usize)> {
    let spawned = &evidence.tasks.as_ref()?.spawned;
    let all: usize = spawned.iter().map(|spawned| spawned.last).sum();
    let most = spawned.first()?;
    (most.last as f64 >= MUCH_OF_ALL * all as f64).then_some((most, all))
}

/// Returns the route that most requests are of, and the growth for each of them, if that is about a task or a few.
fn for_each_request(evidence: &Evidence, growth: f64) -> Option<(&str, f64)> {
    let requests = evidence.requests.as_ref()?;
    let route = requests.whole().max_by_key(|route| route.ended())?;
    let each = growth / route.ended().max(1) as f64;
    let is_most = route.ended() * 2 > requests.finished() + requests.dropped();
    if !is_most || !(SPAWNED_LEAST..=SPAWNED_MOST).contains(&each) {
        return None;
    }
    Some((&route.name, each))
}

/// Connections that are kept.
pub(crate) fn connections(evidence: &Evidence) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some(connections) = &evidence.connections else {
        return findings;
    };
    for peers in &connections.upstreams {
        let Some(growth) = peers.growth else { continue };
        if !growth.rises_by_more_than(MORE.max(growth.from / 5)) {
            continue;
        }
        let words = Words {
            headline: format!(
                "Connections to {} become more, by {:.0} a second.",
                peers.address,
                growth.growth() as f64 / connections.seconds.max(f64::MIN_POSITIVE)
            ),
            seen: format!("{} are open.", peers.open),
            cause: "Something keeps them, until no file descriptor is left.".to_owned(),
            fix: "Use one client with a bounded pool.".to_owned(),
        };
        let kind = "kept_connections";
        findings.push(Finding::fault(
            kind,
            CONNECTIONS_WEIGHT,
            "/debug/sockets",
            words,
        ));
    }
    findings
}

/// Descriptors that run out.
pub(crate) fn descriptors(evidence: &Evidence) -> Vec<Finding> {
    let Some(descriptors) = &evidence.descriptors else {
        return Vec::new();
    };
    let is_near = descriptors.most_open as f64 >= DESCRIPTORS * descriptors.limit as f64;
    if descriptors.none_left == 0 && (!is_near || descriptors.limit == 0) {
        return Vec::new();
    }
    let mut kinds: Vec<_> = descriptors.by_kind.iter().collect();
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let mut listed = Vec::new();
    for (kind, count) in kinds {
        listed.push(format!("{kind} {count}"));
    }
    let mut seen = Vec::new();
    if !listed.is_empty() {
        seen.push(format!("Open by kind: {}.", listed.join(", ")));
    }
    // Not where most descriptors are of connections.
    let most = descriptors
        .by_folder
        .iter()
        .max_by_key(|(_, count)| **count);
    if let Some((folder, count)) = most
        && *count as f64 >= MUCH_OF_ALL * descriptors.most_open as f64
    {
        seen.push(format!("{count} of the files lie in a folder `{folder}`."));
    }
    let words = Words {
        headline: format!(
            "{} of {} file descriptors are open: {} can be opened or accepted{}.",
            descriptors.most_open,
            descriptors.limit,
            if descriptors.none_left > 0 {
                "at times nothing"
            } else {
                "soon nothing"
            },
            opened_at(evidence)
                .map(|place| format!(". Files are opened at {place}"))
                .unwrap_or_default()
        ),
        seen: seen.join(" "),
        cause: "Descriptors are kept; the kind with most of them says which.".to_owned(),
        fix: "Close what is not needed, and bound what is; then raise the limit (`ulimit -n`, `LimitNOFILE=`).".to_owned(),
    };
    vec![Finding::fault(
        "descriptors",
        DESCRIPTORS_WEIGHT,
        "/debug/memory",
        words,
    )]
}

/// Returns the line of the service that opens files, if one was seen to.
fn opened_at(evidence: &Evidence) -> Option<String> {
    let mut stacks = Vec::new();
    if let Some(threads) = &evidence.threads {
        stacks.extend(threads.stacks());
    }
    if let Some(cpu) = &evidence.cpu {
        stacks.extend(cpu.stacks());
    }
    stacks.retain(|stack| inner_passes(stack, PartMeaning::OpensFile) && own(stack).is_some());
    let (found, _) = most_frequent(stacks.into_iter())?;
    Some(place(found.most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{Connections, Descriptors, Memory, Peers};
    use crate::rules::judge;
    use crate::testing::{self, of_threads};
    use crate::threads::Thread;
    use crate::threads::testing::{WORKER, runs};

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
                says: "live memory grows by 24.5 MiB a second".to_owned(),
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
    fn growth_is_told_on_the_right_side_of_each_threshold() {
        let of = |live, tasks| Evidence {
            memory: Some(Memory {
                seconds: 10.0,
                live,
                tasks,
                says: String::new(),
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
            let tasks = rises(0, (each * 2000.0).round() as i64);
            let routes = [
                crate::testing::route("POST /signup", 0.1, 2000),
                crate::testing::route("GET /", 0.1, others),
            ];
            let mut evidence = crate::testing::evidence(&routes, &[]);
            evidence.memory = Some(Memory {
                seconds: 10.0,
                tasks,
                ..Memory::default()
            });
            super::tasks(&evidence)
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
                says: String::new(),
                ..Memory::default()
            });
            let found = judge(&evidence);
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
