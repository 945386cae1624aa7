//! Threads that run requests are blocked in a call: all that such a thread has in hand waits.

use ecosystem::PartMeaning;

use super::table;
use crate::facts::Facts;
use crate::finding::{Row, Sighting};
use crate::threads::seen::{
    Does, Spot, blocked_share, function, grouped, in_state, inner_passes, is_block_on, is_told,
    most_frequent, own, passes, past, place, waits_for_lock, worst,
};
use crate::threads::{Stack, State, Thread, ThreadProfile};
use crate::thresholds::{ALWAYS, BLOCKED, FEWEST_SAMPLES};

pub(crate) fn check(facts: &Facts<'_>) -> Option<BlockedThreads> {
    let threads = facts.evidence.threads.as_deref()?;
    // A runtime that serves no requests may be that of another service in the process.
    let requests = threads.run_requests();
    if worst(&requests) >= BLOCKED {
        blocked(threads, &requests, true)
    } else {
        blocked(threads, &threads.drive(), false)
    }
}

/// Threads that are blocked in a call.
pub(crate) struct BlockedThreads {
    row: &'static Row,
    run_requests: bool,
    is_deadlock: bool,
    blocked: usize,
    of: usize,
    /// Largest share of the time for which one of them is blocked.
    worst: f64,
    samples: u64,
    /// The state in the call: `blocked in fsync`.
    state: String,
    at: At,
    holder: Holder,
}

/// Place of a blocked thread.
enum At {
    Known(Spot),
    /// It could not be stopped in the call; it was stopped there before and after.
    Around(Spot),
    Unknown,
}

/// Threads past the lock for which the others wait.
enum Holder {
    /// The call is no wait for a lock, or nobody was seen past it.
    NotSeen,
    /// No thread is past the lock of a deadlock.
    Nobody,
    /// A thread, which waits for another lock there.
    Waits(Spot),
    Does(Does),
    /// The blocked threads: others wait for a lock there, which these are past.
    These(Spot),
}

fn blocked(
    profile: &ThreadProfile,
    threads: &[&Thread],
    run_requests: bool,
) -> Option<BlockedThreads> {
    let worst = worst(threads);
    let found = most_frequent(in_state(threads, State::Blocked))?.0;
    if worst < BLOCKED || found.samples < FEWEST_SAMPLES {
        return None;
    }
    let mut blocked = Vec::new();
    let mut samples = 0;
    for thread in threads {
        samples = samples.max(thread.samples);
        let share = blocked_share(thread);
        if share >= BLOCKED {
            blocked.push(share);
        }
    }
    let stack = found.most;
    let past = past(stack, profile.stacks(), profile.moments);
    // Of a lock in use, somebody is past it now and then, and not waiting for another lock all the time.
    let is_held_for_ever = match &past {
        Some(past) => {
            waits_for_lock(past.most) && past.samples as f64 >= ALWAYS * profile.moments as f64
        }
        None => true,
    };
    let is_stuck = is_held_for_ever
        && !inner_passes(stack, PartMeaning::Channel)
        && blocked.len() * 2 >= threads.len()
        && blocked.iter().all(|share| *share >= ALWAYS);
    let is_lock = stack.is_in_futex() && !is_block_on(stack);
    let is_deadlock = is_stuck && is_lock;
    let before = lock_before(profile, threads, stack);
    let holder = match (&past, before) {
        (Some(past), _) if is_deadlock => Holder::Waits(place(past.most)),
        (Some(past), _) => Holder::Does(past.does()),
        (None, Some(lock)) => Holder::These(place(lock)),
        (None, None) if is_deadlock => Holder::Nobody,
        (None, None) => Holder::NotSeen,
    };
    let row = match before {
        Some(lock) => row(lock, false, true),
        None => row(stack, is_stuck, past.is_some() && !is_stuck),
    };
    Some(BlockedThreads {
        row,
        run_requests,
        is_deadlock,
        blocked: blocked.len(),
        of: threads.len(),
        worst,
        samples,
        state: found.text(),
        at: at(profile, stack),
        holder,
    })
}

/// Returns a stack that waits for a lock which threads at `stack` are past, if `stack` is no wait for a lock itself.
fn lock_before<'a>(
    profile: &ThreadProfile,
    threads: &[&'a Thread],
    stack: &Stack,
) -> Option<&'a Stack> {
    if waits_for_lock(stack) {
        return None;
    }
    let blocked = in_state(threads, State::Blocked);
    let (waits, _) = most_frequent(blocked.filter(|stack| waits_for_lock(stack)))?;
    let past = past(waits.most, profile.stacks(), profile.moments)?;
    let is_this = (function(past.most), past.most.in_call()) == (function(stack), stack.in_call());
    if !is_this || waits.samples < FEWEST_SAMPLES {
        return None;
    }
    Some(waits.most)
}

/// Returns the place of a stack. A thread that could not be stopped in a call has none, and was stopped before and after.
fn at(profile: &ThreadProfile, stack: &Stack) -> At {
    if !stack.frames.is_empty() {
        return At::Known(place(stack));
    }
    let mut around = Vec::new();
    for thread in profile.drive() {
        let mut stacks = thread.stacks.iter();
        if stacks.any(|other| other.frames.is_empty() && other.call == stack.call) {
            let told = thread.stacks.iter();
            around.extend(told.filter(|stack| own(stack).is_some() && is_told(stack)));
        }
    }
    match grouped(around.into_iter(), function).first() {
        Some(around) => At::Around(place(around.most)),
        None => At::Unknown,
    }
}

/// Returns the row of a call that blocks.
fn row(stack: &Stack, is_stuck: bool, is_past_known: bool) -> &'static Row {
    if passes(stack, PartMeaning::WaitsForRayon) {
        table::BLOCKED_FOR_RAYON
    } else if stack.is_in_pipe() {
        table::BLOCKED_IN_PIPE
    } else if passes(stack, PartMeaning::NameLookup) {
        table::BLOCKED_IN_LOOKUP
    } else if is_block_on(stack) {
        table::BLOCKED_ON_FUTURE
    } else if !stack.is_in_futex() {
        table::BLOCKED_IN_CALL
    } else if is_past_known {
        table::BLOCKED_BY_HOLDER
    } else if is_stuck {
        table::DEADLOCK
    } else {
        table::BLOCKED_FOR_THREAD
    }
}

impl Sighting for BlockedThreads {
    fn row(&self) -> &'static Row {
        self.row
    }

    fn share(&self) -> f64 {
        self.worst
    }

    fn headline(&self) -> String {
        let begin = if self.is_deadlock {
            "Probable deadlock: "
        } else {
            ""
        };
        let which = if self.run_requests {
            "requests"
        } else {
            "tasks"
        };
        let at = match &self.at {
            At::Known(spot) => format!("at {spot}"),
            At::Around(spot) => format!("probably in {spot}"),
            At::Unknown => "at an unknown place".to_owned(),
        };
        format!(
            "{begin}{} of {} threads that run {which} are {} {at}.",
            self.blocked, self.of, self.state
        )
    }

    fn seen(&self) -> String {
        let seen = format!(
            "Blocked in up to {:.0} % of {} samples.",
            self.worst * 100.0,
            self.samples
        );
        match &self.holder {
            Holder::NotSeen => seen,
            Holder::Nobody => format!("{seen} No thread is past this lock."),
            Holder::Waits(spot) => {
                format!("{seen} The thread past this lock waits for a lock at {spot}.")
            }
            Holder::Does(does) => format!("{seen} Whoever is past it {does}."),
            Holder::These(lock) => {
                format!("{seen} Others wait for a lock at {lock}, and this is past it.")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Evidence;
    use crate::finding::Finding;
    use crate::rules::told;
    use crate::testing::of_threads;
    use crate::threads::testing::{LOCK, WORKER, in_call, runs};

    fn look(evidence: &Evidence) -> Vec<Finding> {
        told(super::check(&Facts::of(evidence)))
    }

    /// Returns the finding on workers that did this in 100 moments.
    fn said(workers: Vec<Vec<Stack>>) -> Option<String> {
        let mut threads = Vec::new();
        for did in workers {
            threads.push(Thread::of("tokio worker", did));
        }
        let found = look(&of_threads(threads, 0.05));
        found.into_iter().next().map(|finding| finding.says)
    }

    #[test]
    fn a_worker_that_waits_for_a_lock_is_told_with_who_is_past_it() {
        let waits = in_call(60, "futex", &[WORKER, "shop::append", LOCK]);
        // The kernel waits for one call at several places, and is on a CPU meanwhile.
        let mut syncs = in_call(15, "fsync", &[WORKER, "shop::append", "fsync"]);
        syncs.text = "(blocked in fsync: folio_wait_bit)".to_owned();
        let works = runs(10, &[WORKER, "shop::append", "__GI_fsync"]);
        // Whoever is about to sleep is not past it.
        let contends = runs(40, &[WORKER, "shop::append", LOCK]);
        let says = said(vec![vec![waits, syncs, works, contends]]).expect("it is blocked");
        assert!(
            says.contains("blocked in futex at shop::append. Seen"),
            "{says}"
        );
        assert!(
            says.contains("past it is in fsync at shop::append."),
            "{says}"
        );
        assert!(says.contains("Drop the guard before that"), "{says}");
    }

    #[test]
    fn a_call_is_one_wherever_the_kernel_waits_in_it() {
        let sync = |samples, text: &str| {
            let mut stack = in_call(samples, "fsync", &[WORKER, "shop::append"]);
            text.clone_into(&mut stack.text);
            stack
        };
        let reads = in_call(20, "read", &[WORKER, "shop::load"]);
        let does = [
            sync(15, "(blocked in fsync: wait_bit)"),
            sync(15, "(blocked in fsync: commit)"),
            reads,
        ];
        let says = said(vec![does.into()]).expect("it is blocked");
        assert!(says.contains("blocked in fsync at shop::append"), "{says}");
    }

    #[test]
    fn threads_that_all_wait_for_ever_are_told_as_a_deadlock() {
        let waits = || vec![in_call(100, "futex", &[WORKER, "shop::visit", LOCK])];
        let says = said(vec![waits(), waits()]).expect("both are blocked");
        assert!(
            says.starts_with("Probable deadlock: 2 of 2 threads"),
            "{says}"
        );
        let once = vec![
            in_call(60, "futex", &[WORKER, "shop::visit", LOCK]),
            runs(40, &[WORKER, "shop::other"]),
        ];
        let says = said(vec![once, waits()]).expect("both are blocked");
        assert!(!says.contains("deadlock"), "{says}");
    }

    #[test]
    fn a_future_that_block_on_awaits_is_no_lock() {
        let block_on = "futures_executor::local_pool::block_on";
        let waits = in_call(90, "futex", &[WORKER, "shop::rate", block_on]);
        let says = said(vec![vec![waits]]).expect("it is blocked");
        assert!(
            says.contains("Use `.await`") && !says.contains("deadlock"),
            "{says}"
        );
    }

    #[test]
    fn a_thread_that_cannot_be_stopped_is_where_it_was_around() {
        let unseen = in_call(90, "recvfrom", &[]);
        let around = vec![unseen, runs(3, &[WORKER, "shop::rate"]), runs(4, &[WORKER])];
        let elsewhere = vec![runs(50, &[WORKER, "shop::export"])];
        let says = said(vec![around, elsewhere]).expect("it is blocked");
        assert!(
            says.contains("blocked in recvfrom probably in shop::rate."),
            "{says}"
        );
        let says = said(vec![vec![in_call(90, "recvfrom", &[])]]).expect("it is blocked");
        assert!(says.contains("at an unknown place"), "{says}");
    }

    #[test]
    fn a_runtime_that_serves_no_requests_does_not_count() {
        let reads = || vec![in_call(90, "read", &[WORKER, "shop::load"])];
        let mut serves = Thread::of("tokio worker", reads());
        serves.began_requests = true;
        let other = Thread::of("tokio worker", vec![runs(90, &[WORKER])]);
        let found = look(&of_threads(vec![serves, other], 0.0));
        assert!(
            found[0]
                .says
                .starts_with("1 of 1 threads that run requests"),
            "{found:?}"
        );
    }

    #[test]
    fn it_is_told_on_the_right_side_of_each_threshold() {
        let blocked = |share: f64, samples: f64| {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let part = (samples * share).round() as u64;
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let rest = samples as u64 - part;
            vec![
                in_call(part, "read", &[WORKER, "shop::load"]),
                runs(rest, &[WORKER]),
            ]
        };
        assert!(said(vec![blocked(BLOCKED - 0.01, 1000.0)]).is_none());
        assert!(said(vec![blocked(BLOCKED, 1000.0)]).is_some());
        assert!(said(vec![blocked(1.0, FEWEST_SAMPLES as f64 - 1.0)]).is_none());
        assert!(said(vec![blocked(1.0, FEWEST_SAMPLES as f64)]).is_some());
        let lock = |share: f64| {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let part = (1000.0 * share) as u64;
            let waits = in_call(part, "futex", &[WORKER, "shop::visit", LOCK]);
            vec![vec![waits, runs(1000 - part, &[WORKER])]]
        };
        assert!(said(lock(ALWAYS)).unwrap().contains("deadlock"));
        assert!(!said(lock(ALWAYS - 0.01)).unwrap().contains("deadlock"));
    }
}
