//! The rules: each checks the facts and returns typed sightings, which become findings by the table of their words.

mod blocked_worker;
mod calls;
mod computing_request;
mod computing_task;
mod computing_worker;
mod connections;
mod datagrams;
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
mod lost_permits;
mod one_after_another;
mod one_task;
mod producer;
mod rare_hold;
mod retried;
mod runtimes;
mod small_reads;
mod spins;
mod sqlite;
mod sqlite_computes;
mod table;
mod unpolled;
mod waits;
mod waits_for_itself;
mod wakes_all;
mod why;

use crate::facts::Facts;
use crate::finding::{Finding, Level, Sighting};
use crate::thresholds::BELOW_CAUSE;
use table::{EXPLAINS, Effect};

pub(crate) use table::{COMPUTES, TOLD_BY_FAULTS};

/// A rule: what it finds.
type Rule = fn(&Facts<'_>) -> Vec<Finding>;

/// Judges the facts by all rules, and leaves out what is explained.
pub(crate) fn judge(facts: &Facts<'_>) -> Vec<Finding> {
    let mut all = Vec::new();
    for rule in RULES {
        all.extend(rule(facts));
    }
    unexplained(&all)
}

/// Leaves out what other findings explain, and at one place the less certain of two findings of one kind.
fn unexplained(all: &[Finding]) -> Vec<Finding> {
    let mut left = Vec::new();
    for original in all {
        let mut finding = original.clone();
        let mut is_explained = false;
        for cause in all {
            let is_there = cause.shares_place(original);
            is_explained |= is_there && cause.kind == original.kind && is_surer(cause, original);
            match effect(cause, original) {
                Some(Effect::Drops) => is_explained = true,
                Some(Effect::DropsThere) => is_explained |= is_there,
                Some(Effect::DropsLesser) => is_explained |= cause.level <= original.level,
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

/// All rules. A new one is a file beside this one, and a line here; its words are a row of the table.
const RULES: &[Rule] = &[
    |facts| told(blocked_worker::check(facts)),
    |facts| told(disk::check(facts)),
    |facts| told(computing_worker::check(facts)),
    |facts| told(computing_request::check(facts)),
    |facts| told(computing_task::check(facts)),
    |facts| told(rare_hold::check(facts)),
    |facts| told(small_reads::check(facts)),
    |facts| told(spins::check(facts)),
    |facts| told(spins::never_yields(facts)),
    |facts| told(retried::check(facts)),
    |facts| told(wakes_all::check(facts)),
    |facts| told(from_outside::stopped(facts)),
    |facts| told(from_outside::busy_threads(facts)),
    |facts| told(from_outside::busy_blocking_pool(facts)),
    |facts| told(lock_queue::check(facts)),
    |facts| told(sqlite::check(facts)),
    |facts| told(sqlite_computes::check(facts)),
    |facts| told(runtimes::full_blocking_pools(facts)),
    |facts| told(runtimes::late(facts)),
    |facts| told(runtimes::uneven(facts)),
    |facts| told(waits_for_itself::check(facts)),
    |facts| told(lost_permits::check(facts)),
    |facts| told(waits::check(facts)),
    |facts| told(ends::of_requests(facts)),
    |facts| told(ends::of_tasks(facts)),
    |facts| told(ends::deadlocks(facts)),
    |facts| told(limits_nothing::check(facts)),
    |facts| told(equal_work::check(facts)),
    |facts| told(in_a_row::check(facts)),
    |facts| told(one_after_another::check(facts)),
    |facts| told(producer::check(facts)),
    |facts| told(calls::given_up_by_limit(facts)),
    |facts| told(calls::races(facts)),
    |facts| told(unpolled::check(facts)),
    |facts| told(one_task::check(facts)),
    |facts| told(elsewhere::check(facts)),
    |facts| told(endings::given_up(facts)),
    |facts| told(endings::server_errors(facts)),
    |facts| told(growth::memory(facts)),
    |facts| told(growth::tasks(facts)),
    |facts| told(growth::connections(facts)),
    |facts| told(growth::descriptors(facts)),
    |facts| told(connections::not_used_again(facts)),
    |facts| told(connections::nagle(facts)),
    |facts| told(connections::not_accepted(facts)),
    |facts| told(connections::not_read(facts)),
    |facts| told(connections::shared(facts)),
    |facts| told(datagrams::check(facts)),
];

/// Returns the findings of sightings.
pub(crate) fn told<T: Sighting>(sightings: impl IntoIterator<Item = T>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for sighting in sightings {
        findings.push(Finding::of(&sighting));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(level: Level, kind: &'static str, weight: f64, place: &str) -> Finding {
        let Ok(place) = place.parse();
        Finding {
            kind,
            level,
            says: String::new(),
            headline: String::new(),
            seen: String::new(),
            cause: String::new(),
            fix: String::new(),
            see: "",
            weight,
            places: vec![place],
        }
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
        let collects = found(Level::Bound, "collects", 0.9, "shop::read (src/read.rs:7)");
        let task = found(Level::Fault, "one_task", 0.9, "shop::read (src/read.rs:7)");
        assert_eq!(left(&[collects, task]), ["collects"]);
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
