//! Threads that drive no tasks, such as blocking ones, take turns at a lock.

use ecosystem::PartMeaning;

use super::table;
use crate::facts::Facts;
use crate::finding::{Row, Sighting};
use crate::threads::Stack;
use crate::threads::seen::{Does, Spot, inner_passes, most_frequent, past, place, waits_for_lock};
use crate::thresholds::{PAST_PER_WAITER, THREAD_QUEUE};

/// Threads that wait for a lock.
pub(crate) struct LockQueue {
    /// Threads at any time, on average.
    threads: f64,
    at: Spot,
    past: Option<Does>,
}

pub(crate) fn check(facts: &Facts<'_>) -> Option<LockQueue> {
    let profile = facts.evidence.threads.as_deref()?;
    let mut others: Vec<&Stack> = Vec::new();
    for thread in &profile.threads {
        if !thread.is_runtime {
            others.extend(&thread.stacks);
        }
    }
    queue(others.into_iter(), profile.stacks(), profile.moments)
}

fn queue<'a>(
    others: impl Iterator<Item = &'a Stack>,
    all: impl Iterator<Item = &'a Stack>,
    moments: u64,
) -> Option<LockQueue> {
    let (found, _) = most_frequent(others.filter(|stack| waits_for_lock(stack)))?;
    let threads = found.samples as f64 / moments.max(1) as f64;
    let past = past(found.most, all, moments);
    if let Some(past) = &past {
        // Idle threads of a pool wait for each other, too: until one of them is given work.
        let is_idle = inner_passes(past.most, PartMeaning::Channel);
        // There are several of what it guards, and a thread waits no longer than it works.
        let are_several = past.samples as f64 > found.samples as f64 * PAST_PER_WAITER;
        if is_idle || are_several {
            return None;
        }
    }
    if threads < THREAD_QUEUE {
        return None;
    }
    Some(LockQueue {
        threads,
        at: place(found.most),
        past: past.map(|past| past.does()),
    })
}

impl Sighting for LockQueue {
    fn row(&self) -> &'static Row {
        match self.past {
            Some(_) => table::THREAD_QUEUE,
            None => table::THREAD_DEADLOCK,
        }
    }

    fn headline(&self) -> String {
        let (threads, at) = (self.threads, &self.at);
        format!("{threads:.1} threads wait at any time for a lock at {at}.")
    }

    fn seen(&self) -> String {
        match &self.past {
            Some(past) => format!("One past it {past}."),
            None => "No thread was seen past it.".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::told;
    use crate::threads::testing::{BLOCKING, LOCK, in_call};

    #[test]
    fn who_queues_for_a_lock_is_told_with_who_is_past_it() {
        let wait = |inner| in_call(450, "futex", &[BLOCKING, "shop::read", inner]);
        let holds = |inner| in_call(90, "futex", &[BLOCKING, "shop::read", inner]);
        let query = in_call(90, "fsync", &[BLOCKING, "shop::read", "shop::query"]);
        let told = |stacks: &[Stack]| {
            told(queue(stacks.iter(), stacks.iter(), 100))
                .pop()
                .map(|finding| finding.says)
        };
        let says = told(&[wait(LOCK), query]).expect("a queue");
        assert!(
            says.starts_with(
                "4.5 threads wait at any time for a lock at shop::read. Seen: One past it is in fsync at shop::query"
            ),
            "{says}"
        );
        let receives = "std::sync::mpsc::Receiver<T>::recv";
        for idle in [
            vec![in_call(90, "futex", &[BLOCKING, "shop::read", LOCK])],
            vec![wait(receives)],
            vec![wait("std::sync::poison::condvar::Condvar::wait")],
            // The thread pool of the Rust book: one waits for a job, with a lock for which the others wait.
            vec![wait(LOCK), holds(receives)],
        ] {
            assert_eq!(told(&idle), None, "{idle:?}");
        }
    }

    #[test]
    fn threads_that_wait_for_less_time_than_they_work_are_no_queue() {
        let told = |past| {
            let stacks = [
                in_call(400, "futex", &[BLOCKING, "shop::read", LOCK]),
                in_call(
                    past,
                    "clock_nanosleep",
                    &[BLOCKING, "shop::read", "shop::query"],
                ),
            ];
            queue(stacks.iter(), stacks.iter(), 100).is_some()
        };
        assert!(told(400) && !told(401));
    }

    #[test]
    fn one_thread_asleep_at_any_time_is_a_queue() {
        let wait = |samples| in_call(samples, "futex", &[BLOCKING, "shop::read", LOCK]);
        let told = |samples| {
            let stacks = [wait(samples)];
            queue(stacks.iter(), stacks.iter(), 100).is_some()
        };
        assert!(!told(99) && told(100));
    }
}
