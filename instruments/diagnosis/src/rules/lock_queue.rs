//! Threads that drive no tasks, such as blocking ones, take turns at a lock.

use ecosystem::PartMeaning;

use crate::evidence::Evidence;
use crate::finding::{Finding, Words};
use crate::threads::Stack;
use crate::threads::seen::{inner_passes, most_frequent, past, place, waits_for_lock};
use crate::thresholds::{PAST_PER_WAITER, THREAD_QUEUE, THREAD_QUEUE_WEIGHT};

pub(crate) fn look(evidence: &Evidence) -> Vec<Finding> {
    let Some(profile) = &evidence.threads else {
        return Vec::new();
    };
    let mut others: Vec<&Stack> = Vec::new();
    for thread in &profile.threads {
        if !thread.is_runtime {
            others.extend(&thread.stacks);
        }
    }
    let found = finding(others.into_iter(), profile.stacks(), profile.moments);
    found.into_iter().collect()
}

fn finding<'a>(
    others: impl Iterator<Item = &'a Stack>,
    all: impl Iterator<Item = &'a Stack>,
    moments: u64,
) -> Option<Finding> {
    let (found, _) = most_frequent(others.filter(|stack| waits_for_lock(stack)))?;
    let threads = found.samples as f64 / moments.max(1) as f64;
    let past = past(found.most, all, moments);
    // Idle threads of a pool wait for each other, too: until one of them is given work.
    if let Some(past) = &past
        && inner_passes(past.most, PartMeaning::Channel)
    {
        return None;
    }
    if threads < THREAD_QUEUE {
        return None;
    }
    // There are several of what it guards, and a thread waits no longer than it works.
    if let Some(past) = &past
        && past.samples as f64 > found.samples as f64 * PAST_PER_WAITER
    {
        return None;
    }
    let at = place(found.most);
    let headline = format!("{threads:.1} threads wait at any time for a lock at {at}.");
    let words = match past {
        Some(past) => Words {
            headline,
            seen: format!("One past it {}.", past.does()),
            cause: "One thread is past it at a time, and requests wait for the threads.".to_owned(),
            fix: "Drop the guard before what takes long, or have several of what it guards, as a pool of connections \
                  does."
                .to_owned(),
        },
        None => Words {
            headline,
            seen: "No thread was seen past it.".to_owned(),
            cause: "A deadlock: each holds a lock for which another waits. Or the holder is in code whose lines are unknown."
                .to_owned(),
            fix: "Take locks in one order, and drop a guard before the next lock is taken.".to_owned(),
        },
    };
    Some(Finding::fault(
        "lock",
        THREAD_QUEUE_WEIGHT,
        "/debug/threads",
        words,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::testing::{BLOCKING, LOCK, in_call};

    #[test]
    fn who_queues_for_a_lock_is_told_with_who_is_past_it() {
        let wait = |inner| in_call(450, "futex", &[BLOCKING, "shop::read", inner]);
        let holds = |inner| in_call(90, "futex", &[BLOCKING, "shop::read", inner]);
        let query = in_call(90, "fsync", &[BLOCKING, "shop::read", "shop::query"]);
        let told = |stacks: &[Stack]| {
            finding(stacks.iter(), stacks.iter(), 100).map(|finding| finding.says)
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
            finding(stacks.iter(), stacks.iter(), 100).is_some()
        };
        assert!(told(400) && !told(401));
    }

    #[test]
    fn one_thread_asleep_at_any_time_is_a_queue() {
        let wait = |samples| in_call(samples, "futex", &[BLOCKING, "shop::read", LOCK]);
        let told = |samples| {
            let stacks = [wait(samples)];
            finding(stacks.iter(), stacks.iter(), 100).is_some()
        };
        assert!(!told(99) && told(100));
    }
}
