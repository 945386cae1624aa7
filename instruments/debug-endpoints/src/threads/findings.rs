//! What a profile of threads says of requests that wait.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::profile::{Stack, State, Thread, ThreadProfile};
use crate::finding::Finding;
use crate::thread_roles::Role;

/// A thread that runs requests and is blocked for less of the time holds up few: runtimes have locks of their own.
const BLOCKED: f64 = 0.2;
/// Threads that compute for less of the time have time for whoever comes.
const BUSY: f64 = 0.5;
/// The same if one of them did not yield for so long, in seconds.
const HELD: f64 = 0.01;
const BUSY_WHILE_HELD: f64 = 0.1;
/// A place with less of the computing is one among many.
const MOST: f64 = 0.4;
/// One with less is none of the places where most of it is.
const MUCH: f64 = 0.1;
/// At most so many places are told.
const MOST_PLACES: usize = 3;
/// What is seen less often may be chance.
const FEWEST: u64 = 5;
/// So many threads asleep on average are a queue.
const QUEUE: f64 = 1.0;

impl ThreadProfile {
    /// Who of those that run requests is blocked in a call, and what they compute. `held` is how long one of them
    /// did not yield, in seconds.
    pub(crate) fn findings(&self, held: f64) -> Vec<Finding> {
        let drives: Vec<&Thread> = self
            .threads
            .iter()
            .filter(|thread| thread.is_runtime)
            .collect();
        let of_state = |state| {
            let stacks = drives.iter().flat_map(|thread| &thread.stacks);
            most_frequent(stacks.filter(move |stack| stack.state == state))
        };
        let mut findings = Vec::new();
        let worst = drives
            .iter()
            .map(|thread| thread.blocked)
            .fold(0.0, f64::max);
        let blocked = of_state(State::Blocked).filter(|(_, samples, _)| *samples >= FEWEST);
        if let Some((stack, ..)) = blocked.filter(|_| worst >= BLOCKED) {
            let count = drives
                .iter()
                .filter(|thread| thread.blocked >= BLOCKED)
                .count();
            let says = format!(
                "{count} of {} threads that run requests sleep in a call, up to {:.0} % of the time: {} at {}. All that \
                 such a thread has in hand waits meanwhile. {}",
                drives.len(),
                worst * 100.0,
                stack.text.trim_matches(['(', ')']),
                place(stack),
                advice(stack),
            );
            findings.push(Finding::new(
                "blocked_worker",
                2.0 + worst,
                "/debug/threads",
                says,
            ));
        }
        let samples: u64 = drives.iter().map(|thread| thread.samples).sum();
        if let Some((stack, of_it, of_all)) = of_state(State::Running) {
            let busy = of_all as f64 / samples.max(1) as f64;
            let share = of_it as f64 / of_all.max(1) as f64;
            let is_busy = busy >= BUSY || held >= HELD && busy >= BUSY_WHILE_HELD;
            let is_told = stack.own.as_ref().is_some_and(|own| !is_main(own));
            // Who is blocked most of the time is not held up by what else it does.
            if is_told && worst < BUSY && is_busy && share >= MOST && of_it >= FEWEST {
                let says = format!(
                    "Threads that run requests compute {:.0} % of the time, {:.0} % of that at {}; one did not yield for \
                     {:.0} ms. Whoever has to be polled waits meanwhile. Do it once and not for each request, do less of \
                     it, or do it on a blocking thread.",
                    busy * 100.0,
                    share * 100.0,
                    place(stack),
                    held * 1e3,
                );
                findings.push(Finding::new(
                    "computing_worker",
                    1.0 + busy / 2.0,
                    "/debug/pprof/flamegraph",
                    says,
                ));
            }
        }
        let all = self.threads.iter().flat_map(|thread| &thread.stacks);
        findings.extend(of_sqlite(all, self.moments));
        findings
    }

    /// Where in the service's own code threads compute most, and how much of all computing is there; `None` if it is nowhere
    /// in particular.
    pub(crate) fn computing(&self) -> Option<String> {
        let stacks = self.threads.iter().flat_map(|thread| &thread.stacks);
        let functions = by_function(stacks.filter(|stack| stack.state == State::Running));
        let all: u64 = functions.iter().map(|(_, samples)| samples).sum();
        let share = |samples: u64| samples as f64 / all.max(1) as f64;
        let places = functions
            .iter()
            .filter(|(_, samples)| *samples >= FEWEST && share(*samples) >= MUCH)
            .filter(|(stack, _)| stack.own.as_ref().is_some_and(|own| !is_main(own)))
            .take(MOST_PLACES)
            .map(|(stack, samples)| {
                format!("{:.0} % at {}", share(*samples) * 100.0, place(stack))
            });
        let places: Vec<_> = places.collect();
        (!places.is_empty()).then(|| places.join("; "))
    }

    /// Where most of the blocking threads are that have something to do.
    pub(crate) fn at_work_on_blocking_threads(&self) -> Option<String> {
        let threads = self
            .threads
            .iter()
            .filter(|thread| thread.role == Role::Blocking.name());
        let stacks = threads.flat_map(|thread| &thread.stacks);
        let (stack, ..) = most_frequent(stacks.filter(|stack| stack.state != State::Idle))?;
        Some(format!("{} {}", place(stack), stack.text))
    }
}

/// Threads of the database that sleep until another connection has written. Requests only seem to wait for an answer.
fn of_sqlite<'a>(all: impl Iterator<Item = &'a Stack>, moments: u64) -> Option<Finding> {
    let sleeps =
        |stack: &&Stack| stack.state == State::Blocked && passes(stack, "sqlite3InvokeBusyHandler");
    let (mut asleep, mut of_readers) = (0, 0);
    for stack in all.filter(sleeps) {
        asleep += stack.samples;
        if passes(stack, "sqlite3PagerSharedLock") {
            of_readers += stack.samples;
        }
    }
    let threads = asleep as f64 / moments.max(1) as f64;
    if threads < QUEUE {
        return None;
    }
    let advice = if of_readers * 2 > asleep {
        "They only want to read, which the rollback journal does not let them do meanwhile: `journal_mode = WAL` does."
    } else {
        "There is one writer at a time: look for a transaction that writes and then awaits anything but the database, and \
         commit before that."
    };
    let says = format!(
        "{threads:.1} threads of SQLite sleep at any time until another connection has written; requests seem to wait \
         for an answer meanwhile, and keep their connections. {advice}"
    );
    Some(Finding::new(
        "database",
        1.1,
        "/debug/threads?all=true",
        says,
    ))
}

/// Of the function with most samples the stack with most of them, the samples of the function, and all.
fn most_frequent<'a>(stacks: impl Iterator<Item = &'a Stack>) -> Option<(&'a Stack, u64, u64)> {
    let functions = by_function(stacks);
    let all = functions.iter().map(|(_, samples)| samples).sum();
    let (stack, samples) = *functions.first()?;
    Some((stack, samples, all))
}

/// Of each function the stack with most samples, and the samples of the function; the most frequent first. A loop is
/// seen at several of its lines.
fn by_function<'a>(stacks: impl Iterator<Item = &'a Stack>) -> Vec<(&'a Stack, u64)> {
    let mut functions: HashMap<(Option<&str>, &str), (&Stack, u64)> = HashMap::new();
    for stack in stacks {
        let (most, samples) = functions
            .entry((function(stack), &stack.text))
            .or_insert((stack, 0));
        *samples += stack.samples;
        if most.samples < stack.samples {
            *most = stack;
        }
    }
    let mut functions: Vec<_> = functions.into_values().collect();
    functions.sort_by_cached_key(|(stack, samples)| (Reverse(*samples), place(stack)));
    functions
}

/// The service's own that is innermost, or what a library was called for.
fn function(stack: &Stack) -> Option<&str> {
    let own = stack.frames.iter().rev().find(|frame| frame.own);
    let frame = own.or(stack.frames.last())?;
    Some(&frame.function)
}

/// The line of the service's and the one that called it, or what a library was called for.
fn place(stack: &Stack) -> String {
    let Some(innermost) = stack.frames.iter().rev().find(|frame| frame.own) else {
        let last = stack.frames.last();
        return last.map_or_else(
            || "an unknown place".to_owned(),
            |last| last.function.clone(),
        );
    };
    let mut own = stack.frames.iter().filter(|frame| frame.own);
    let called_by = own.rfind(|frame| frame.function != innermost.function);
    let called_by = called_by.filter(|frame| !is_main(&frame.function));
    let called_by = called_by.map(|frame| format!(", called by {}", frame.label()));
    innermost.label() + &called_by.unwrap_or_default()
}

/// Whether everything is in this function.
fn is_main(function: &str) -> bool {
    function.contains("::main")
}

fn passes(stack: &Stack, part: &str) -> bool {
    let mut frames = stack.frames.iter();
    frames.any(|frame| frame.function.contains(part))
}

/// What to do about a call that blocks.
fn advice(stack: &Stack) -> &'static str {
    if passes(stack, "rayon_core") {
        "It waits for rayon's threads: hand the work over with `rayon::spawn`, and await a `oneshot` for its result."
    } else if stack.text.contains("pipe") {
        "Whoever reads what it writes is slow, or gone: write logs from a thread of their own, which may drop lines."
    } else if passes(stack, "getaddrinfo") {
        "A name is looked up: `tokio::net::lookup_host` does that on a blocking thread."
    } else if stack.text.contains("futex") {
        "A lock of std, parking_lot or DashMap, or a channel: let go of a guard before the `.await`, and wait for \
         threads by async means."
    } else {
        "Do it on a blocking thread (`tokio::task::spawn_blocking`), or by a call that can be awaited."
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_for_sqlites_writer_is_told_from_who_writes() {
        let reads = "sqlite3PagerSharedLock";
        let sleeps = |samples, wants| {
            let functions = ["sqlite3_step", wants, "sqlite3InvokeBusyHandler"];
            Stack::of(samples, State::Blocked, &functions)
        };
        let works = Stack::of(900, State::Running, &["sqlite3_step"]);
        let seen = [sleeps(150, reads), sleeps(30, "btreeBeginTrans"), works];
        let says = |stacks: &[Stack]| of_sqlite(stacks.iter(), 100).map(|finding| finding.says);
        let readers = says(&seen).expect("1.8 threads");
        assert!(
            readers.starts_with("1.8 threads of SQLite sleep"),
            "{readers}"
        );
        assert!(readers.contains("journal_mode = WAL"), "{readers}");
        let writers = says(&[sleeps(300, "btreeBeginTrans")]).expect("3 threads");
        assert!(writers.contains("one writer at a time"), "{writers}");
        assert_eq!(says(&seen[1..]), None);
    }
}
