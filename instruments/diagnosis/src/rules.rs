//! The rules: each looks at the evidence and returns what it finds.

mod blocked_worker;
mod calls;
mod computing_request;
mod computing_task;
mod computing_worker;
mod connections;
mod disk;
mod elsewhere;
mod endings;
mod ends;
mod equal_work;
mod from_outside;
mod growth;
mod in_a_row;
mod limits_nothing;
mod lock_queue;
mod one_after_another;
mod one_task;
mod producer;
mod rare_hold;
mod runtimes;
mod sqlite;
mod sqlite_computes;
mod unpolled;
mod waits;
mod waits_for_itself;
mod why;

pub(crate) use elsewhere::is_inside;
pub(crate) use endings::after;

use crate::evidence::Evidence;
use crate::finding::{Finding, Level};
use crate::thresholds::BELOW_CAUSE;

/// A rule: its name, and what it finds.
type Rule = (&'static str, fn(&Evidence) -> Vec<Finding>);

/// How the report treats a finding that another one explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// It is left out, wherever it is.
    Drops,
    /// It is left out if both are about one place.
    DropsThere,
    /// It is left out, unless it is the surer of the two.
    DropsLesser,
    /// It is told after its cause.
    RanksBelow,
}

/// Findings that follow from others.
struct Explains {
    causes: &'static [&'static str],
    effect: Effect,
    consequences: &'static [&'static str],
}

/// Kinds of waits for what another request has.
const OF_HOLDERS: &[&str] = &[
    "lock",
    "pool",
    "limit",
    "queue",
    "new_connection",
    "database",
];

/// What follows from what. No rule knows another: the report leaves out what is explained.
const EXPLAINS: &[Explains] = &[
    // A thread that does not yield accepts and reads nothing, and tasks pile up.
    Explains {
        causes: &["blocked_worker", "computing_worker"],
        effect: Effect::Drops,
        consequences: &["accept_queue", "tasks", "unread"],
    },
    Explains {
        causes: &["blocked_worker", "computing_worker"],
        effect: Effect::DropsLesser,
        consequences: &["computing_request", "computing_task"],
    },
    Explains {
        causes: &["computing_worker"],
        effect: Effect::Drops,
        consequences: &["rare_hold"],
    },
    // One computation is told once.
    Explains {
        causes: &["rare_hold"],
        effect: Effect::DropsThere,
        consequences: &["computing_request", "computing_task"],
    },
    Explains {
        causes: &["full_blocking_pool"],
        effect: Effect::Drops,
        consequences: &["unread"],
    },
    // A call that is given up closes its connection.
    Explains {
        causes: &["calls_given_up", "calls_race"],
        effect: Effect::Drops,
        consequences: &["connections"],
    },
    Explains {
        causes: &["stuck", "waits_for_itself", "equal_work"],
        effect: Effect::DropsThere,
        consequences: OF_HOLDERS,
    },
    Explains {
        causes: &["single_flight"],
        effect: Effect::DropsThere,
        consequences: &["lock"],
    },
    // The pool's connections are lent to requests that wait for that statement.
    Explains {
        causes: &["pool", "sqlite_computes", "shared_connection"],
        effect: Effect::DropsThere,
        consequences: &["database"],
    },
    Explains {
        causes: &["one_in_flight", "one_task", "producer"],
        effect: Effect::DropsThere,
        consequences: &["channel", "queue"],
    },
    // They queue for what the limit should have kept away.
    Explains {
        causes: &["limits_nothing"],
        effect: Effect::Drops,
        consequences: &["limit", "pool"],
    },
    Explains {
        causes: &["in_a_row", "calls_given_up"],
        effect: Effect::DropsThere,
        consequences: &[
            "answer",
            "answer_or_stream",
            "blocking_pool",
            "database",
            "lock",
            "new_connection",
            "pool",
        ],
    },
    // Clients leave because they queue.
    Explains {
        causes: &[
            "lock",
            "pool",
            "limit",
            "new_connection",
            "database",
            "stuck",
            "waits_for_itself",
        ],
        effect: Effect::RanksBelow,
        consequences: &["given_up"],
    },
];

/// Judges the evidence by all rules, and leaves out what is explained.
pub(crate) fn judge(evidence: &Evidence) -> Vec<Finding> {
    let mut all = Vec::new();
    for (_, rule) in RULES {
        all.extend(rule(evidence));
    }
    unexplained(&all)
}

/// Leaves out what other findings explain, and at one place the less certain of two findings of one kind.
fn unexplained(all: &[Finding]) -> Vec<Finding> {
    let mut left = Vec::new();
    for finding in all {
        let mut finding = finding.clone();
        let mut is_explained = false;
        for cause in all {
            let is_there = cause.shares_place(&finding);
            is_explained |= is_there && cause.kind == finding.kind && is_surer(cause, &finding);
            match effect(cause, &finding) {
                Some(Effect::Drops) => is_explained = true,
                Some(Effect::DropsThere) => is_explained |= is_there,
                Some(Effect::DropsLesser) => is_explained |= cause.level <= finding.level,
                Some(Effect::RanksBelow) if cause.level == Level::Fault => {
                    finding.weight = finding.weight.min(cause.weight - BELOW_CAUSE);
                }
                _ => {}
            }
        }
        if !is_explained {
            left.push(finding);
        }
    }
    left
}

/// Returns whether one of two findings of a kind says more: it is of a surer level, or of a larger weight.
fn is_surer(one: &Finding, other: &Finding) -> bool {
    one.level < other.level || one.level == other.level && one.weight > other.weight
}

/// Returns what `cause` does to `finding`, if it explains it.
fn effect(cause: &Finding, finding: &Finding) -> Option<Effect> {
    let mut rows = EXPLAINS.iter();
    let row = rows
        .find(|row| row.causes.contains(&cause.kind) && row.consequences.contains(&finding.kind))?;
    Some(row.effect)
}

/// All rules. A new one is a file beside this one, and a line here; what it explains is a line above.
const RULES: &[Rule] = &[
    ("blocked_worker", blocked_worker::look),
    ("disk", disk::look),
    ("computing_worker", computing_worker::look),
    ("computing_request", computing_request::look),
    ("computing_task", computing_task::look),
    ("rare_hold", rare_hold::look),
    ("stopped", from_outside::stopped),
    ("busy_thread", from_outside::busy_thread),
    ("busy_blocking_pool", from_outside::busy_blocking_pool),
    ("lock_queue", lock_queue::look),
    ("sqlite", sqlite::look),
    ("sqlite_computes", sqlite_computes::look),
    ("full_blocking_pool", runtimes::full_blocking_pool),
    ("late", runtimes::late),
    ("uneven_runtimes", runtimes::uneven),
    ("waits_for_itself", waits_for_itself::look),
    ("waits", waits::look),
    ("ends", ends::look),
    ("limits_nothing", limits_nothing::look),
    ("equal_work", equal_work::look),
    ("in_a_row", in_a_row::look),
    ("one_after_another", one_after_another::look),
    ("producer", producer::look),
    ("calls_given_up", calls::given_up_by_limit),
    ("calls_race", calls::race),
    ("unpolled", unpolled::look),
    ("one_task", one_task::look),
    ("elsewhere", elsewhere::look),
    ("given_up", endings::given_up),
    ("server_errors", endings::server_errors),
    ("memory", growth::memory),
    ("tasks", growth::tasks),
    ("kept_connections", growth::connections),
    ("descriptors", growth::descriptors),
    ("connections", connections::not_used_again),
    ("nagle", connections::nagle),
    ("accept_queue", connections::not_accepted),
    ("unread", connections::not_read),
    ("shared_connection", connections::shared),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Words;

    fn found(level: Level, kind: &'static str, weight: f64, place: &str) -> Finding {
        Finding::of(level, kind, weight, "", Words::default()).at(place)
    }

    fn left(all: &[Finding]) -> Vec<&'static str> {
        let left = unexplained(all);
        left.iter().map(|finding| finding.kind).collect()
    }

    #[test]
    fn what_a_finding_explains_is_left_out() {
        let worker = found(Level::Fault, "computing_worker", 1.5, "shop::rank");
        let unread = found(Level::Fault, "unread", 0.8, "");
        assert_eq!(
            left(&[worker.clone(), unread.clone()]),
            ["computing_worker"]
        );
        assert_eq!(left(&[unread]), ["unread"]);
        // Computing that is no fault explains no computing that is.
        let again = found(Level::Fault, "computing_request", 0.8, "shop::rank");
        let turns = found(Level::Wait, "computing_worker", 1.5, "shop::rank");
        assert_eq!(left(&[worker, again.clone()]), ["computing_worker"]);
        assert_eq!(
            left(&[turns, again]),
            ["computing_worker", "computing_request"]
        );
    }

    #[test]
    fn a_wait_is_told_once_at_one_place() {
        let stuck = |place| found(Level::Fault, "stuck", 1.9, place);
        let lock = found(Level::Fault, "lock", 1.4, "shop::read (src/read.rs:7)");
        assert_eq!(
            left(&[stuck("shop::read (src/read.rs:7)"), lock.clone()]),
            ["stuck"]
        );
        assert_eq!(
            left(&[stuck("shop::write (src/write.rs:9)"), lock.clone()]).len(),
            2
        );
        let lesser = found(Level::Wait, "lock", 0.1, "shop::read (src/read.rs:7)");
        assert_eq!(left(&[lock.clone(), lesser]), ["lock"]);
        // A password that is hashed on a worker was told twice, the second time with advice that does not fit.
        let hold = found(Level::Fault, "rare_hold", 0.95, "shop::login");
        let request = |place| found(Level::Fault, "computing_request", 0.85, place);
        assert_eq!(left(&[hold.clone(), request("shop::login")]), ["rare_hold"]);
        assert_eq!(left(&[hold, request("shop::rank")]).len(), 2);
    }

    #[test]
    fn a_consequence_is_told_after_its_cause() {
        let given_up = found(Level::Fault, "given_up", 1.6, "");
        let lock = |level| found(level, "lock", 1.4, "shop::read (src/read.rs:7)");
        let weight = |cause| unexplained(&[given_up.clone(), cause])[0].weight;
        assert!(weight(lock(Level::Fault)) < 1.4);
        assert!(weight(lock(Level::Wait)) > 1.4);
    }
}
