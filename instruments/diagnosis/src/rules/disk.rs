//! Threads that run requests wait for the disk now and then.

use ecosystem::waits_for_disk;

use super::table;
use crate::facts::Facts;
use crate::finding::{Row, Sighting};
use crate::threads::Stack;
use crate::threads::seen::{Spot, function, grouped, hands_over, is_told, place, worst};
use crate::thresholds::{BLOCKED, DISK, FEWEST_OF_DISK};

/// A call in which threads that run requests wait for the disk.
pub(crate) struct DiskWait {
    call: String,
    at: Spot,
    share: f64,
    samples: u64,
}

pub(crate) fn check(facts: &Facts<'_>) -> Option<DiskWait> {
    let profile = facts.evidence.threads.as_deref()?;
    let threads = profile.run_requests();
    // A thread that is blocked for long is told as that.
    if worst(&threads) >= BLOCKED {
        return None;
    }
    let mut stacks: Vec<&Stack> = Vec::new();
    for thread in threads {
        stacks.extend(&thread.stacks);
    }
    stacks.retain(|stack| {
        stack.in_call().is_some_and(waits_for_disk) && is_told(stack) && !hands_over(stack)
    });
    let calls = grouped(stacks.into_iter(), |stack| {
        (function(stack), stack.in_call())
    });
    let found = calls.first()?;
    let share = found.samples as f64 / profile.moments.max(1) as f64;
    if share < DISK || found.samples < FEWEST_OF_DISK {
        return None;
    }
    Some(DiskWait {
        call: found.most.in_call()?.to_owned(),
        at: place(found.most),
        share,
        samples: found.samples,
    })
}

impl Sighting for DiskWait {
    fn row(&self) -> &'static Row {
        table::DISK
    }

    fn headline(&self) -> String {
        let (call, at) = (&self.call, &self.at);
        format!("Threads that run requests wait for the disk: in {call} at {at}.")
    }

    fn seen(&self) -> String {
        format!(
            "One of them is there for {:.1} % of the time, in {} samples.",
            self.share * 100.0,
            self.samples
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Evidence;
    use crate::finding::Finding;
    use crate::rules::told;
    use crate::testing::{both_sides, of_threads};
    use crate::threads::Thread;
    use crate::threads::testing::{BLOCKING, WORKER, in_call, runs};

    fn look(evidence: &Evidence) -> Vec<Finding> {
        told(super::check(&Facts::of(evidence)))
    }

    /// A worker that is in a call for some of 10,000 moments.
    fn worker(call: &str, samples: u64) -> Evidence {
        let did = vec![
            in_call(samples, call, &[WORKER, "shop::append"]),
            runs(10_000 - samples, &[WORKER]),
        ];
        let mut evidence = of_threads(vec![Thread::of("tokio worker", did)], 0.0);
        let threads = evidence.threads.as_mut().unwrap();
        std::sync::Arc::get_mut(threads).unwrap().moments = 10_000;
        evidence
    }

    #[test]
    fn a_call_that_waits_for_the_disk_is_told_however_few_there_are() {
        both_sides(look, DISK, |share| {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            worker("fsync", (10_000.0 * share) as u64)
        });
        let found = look(&worker("fsync", 300)).remove(0);
        assert!(
            found.headline.ends_with("in fsync at shop::append."),
            "{found:?}"
        );
        let few = |samples| {
            let did = vec![in_call(samples, "fsync", &[WORKER, "shop::append"])];
            !look(&of_threads(
                vec![Thread::of(
                    "tokio worker",
                    [did, vec![runs(99, &[WORKER])]]
                        .into_iter()
                        .flatten()
                        .collect(),
                )],
                0.0,
            ))
            .is_empty()
        };
        assert!(!few(FEWEST_OF_DISK - 1) && few(FEWEST_OF_DISK));
        assert!(look(&worker("read", 300)).is_empty());
        assert!(look(&worker("fsync", 3000)).is_empty(), "told as blocked");
    }

    #[test]
    fn blocking_threads_are_there_for_the_disk() {
        let did = vec![in_call(50, "fsync", &[BLOCKING, "shop::append"])];
        let evidence = of_threads(vec![Thread::of("blocking", did)], 0.0);
        assert!(look(&evidence).is_empty());
    }
}
