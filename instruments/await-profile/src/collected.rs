//! Data that the sampler collected, before names are resolved.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::interval::Runs;
use crate::raw_stack::RawStack;
use crate::routes::RouteCount;
use crate::session::FollowUp;
use crate::tail_times::TailTimes;

/// Index of a stack among the distinct ones.
pub(crate) type StackId = u32;

/// Most distinct stacks that a profile keeps, of waits and of wakes each. A stack has at most two kilobytes.
pub(crate) const MAX_STACKS: usize = 10_000;

/// One moment, and what is known of the request that was chosen.
#[derive(Debug)]
pub(crate) struct Sample {
    /// Number of moments before this one, including those with nothing in flight.
    pub(crate) moment: u64,
    /// Number of requests in flight at that moment.
    pub(crate) in_flight: u32,
    pub(crate) route: Arc<str>,
    /// Index of the request among the sampled ones of a tail profile. None if it began before that, and in other
    /// profiles.
    pub(crate) request: Option<u32>,
    pub(crate) outcome: Outcome,
    /// Time from marking the request to its next poll. Zero if it was not marked.
    pub(crate) delay: Duration,
    /// Route of a request that was being polled at that moment, in a tail profile. None if there was none.
    pub(crate) meanwhile: Option<Arc<str>>,
    /// Waits of the child that was chosen with the request.
    pub(crate) child: Waits,
    /// True if the request polled that child itself.
    pub(crate) child_is_member: bool,
    /// True if there were other children to choose from.
    pub(crate) has_several_children: bool,
    /// Stack that woke the request out of this wait, among the `releases`.
    pub(crate) release: Option<StackId>,
    /// Moment of that wake, and the number of the task that made it, if it is known; once for each wake.
    pub(crate) releaser: Option<(Instant, Option<u64>)>,
    /// True if the next poll after the wake was captured for this sample. Its waits are the first of the sample's
    /// `follow_ups`; there are none if the request ended.
    pub(crate) is_followed: bool,
}

/// Waits of one request at the same time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waits {
    pub(crate) stacks: Vec<StackId>,
    /// Number of further waits whose stack was not captured or not kept.
    pub(crate) uncaptured: u32,
}

/// State in which a sample found its request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Waiting(Waits),
    Unregistered,
    Backpressured,
    Ready,
    Running,
    WokenFirst,
    Finished,
    /// It waited, and its executor did not poll it before the profile ended.
    Unanswered,
}

/// All data that a profile is made from, with stacks as addresses.
#[derive(Default)]
pub(crate) struct Collected {
    pub(crate) samples: Vec<Sample>,
    pub(crate) runs: Runs,
    /// Number of moments at which nothing was in flight.
    pub(crate) idle: u64,
    /// Number of moments passed over because the sampler's thread got no CPU.
    pub(crate) missed: u64,
    pub(crate) waits: Stacks,
    pub(crate) releases: Stacks,
    pub(crate) follow_ups: Vec<FollowUp<StackId>>,
    /// Delays between marking a waiting request and its next poll.
    pub(crate) delays: Vec<Duration>,
    /// Time that each capture of a stack took.
    pub(crate) costs: Vec<Duration>,
    /// Duration of sampling.
    pub(crate) elapsed: Duration,
    pub(crate) routes: HashMap<Arc<str>, RouteCount>,
    /// Number of requests that began before the profile, unregistered, and were registered during it.
    pub(crate) late: u64,
    /// Sum of the times for which the late requests were in flight unseen.
    pub(crate) late_time: Duration,
    /// Times of all requests, in a tail profile.
    pub(crate) tail: Option<TailTimes>,
}

impl Collected {
    /// Returns the number of sampled moments.
    pub(crate) fn moments(&self) -> u64 {
        self.samples.len() as u64 + self.idle
    }
}

/// Distinct stacks.
pub(crate) struct Stacks {
    /// Most stacks that are kept.
    pub(crate) most: usize,
    pub(crate) distinct: Vec<RawStack>,
    ids: HashMap<RawStack, StackId>,
}

impl Default for Stacks {
    fn default() -> Self {
        Stacks {
            most: MAX_STACKS,
            distinct: Vec::new(),
            ids: HashMap::new(),
        }
    }
}

impl Stacks {
    /// Returns the ID of this stack, a new one if the stack is new. None if there are already `most`.
    pub(crate) fn intern(&mut self, stack: RawStack) -> Option<StackId> {
        if let Some(&id) = self.ids.get(&stack) {
            return Some(id);
        }
        if self.distinct.len() >= self.most {
            return None;
        }
        let id = u32::try_from(self.distinct.len()).ok()?;
        self.distinct.push(stack.clone());
        self.ids.insert(stack, id);
        Some(id)
    }

    /// Returns the IDs of those stacks for which there is room.
    pub(crate) fn intern_all(&mut self, stacks: Vec<RawStack>) -> Vec<StackId> {
        let mut ids = Vec::with_capacity(stacks.len());
        for stack in stacks {
            ids.extend(self.intern(stack));
        }
        ids
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_many_stacks_there_are_so_many_are_kept() {
        let mut stacks = Stacks::default();
        let ids = (0..2 * MAX_STACKS).map(|address| stacks.intern(Box::new([address])));
        assert_eq!(ids.flatten().count(), MAX_STACKS);
        assert_eq!(stacks.distinct.len(), MAX_STACKS);
        assert_eq!(stacks.intern(Box::new([7])), Some(7), "one that is known");
    }
}
