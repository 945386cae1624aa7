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
mod equal_work;
mod from_outside;
mod growth;
mod in_a_row;
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

pub(crate) use elsewhere::is_inside;
pub(crate) use endings::after;

use ecosystem::Wait;

use crate::evidence::Evidence;
use crate::finding::Finding;

/// A rule: its name, and what it finds.
pub(crate) type Rule = (&'static str, fn(&Evidence) -> Vec<Finding>);

/// All rules. A new one is a file beside this one, and a line here.
pub(crate) const RULES: &[Rule] = &[
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

/// Returns the remedy for a wait; empty if none is known.
fn fix_of(wait: Wait) -> String {
    match wait.fix {
        "–" => String::new(),
        fix => fix.to_owned(),
    }
}
