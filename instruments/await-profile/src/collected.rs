//! What the sampler collected, before names are resolved.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::interval::Runs;
use crate::raw_stack::RawStack;
use crate::registry::RouteCount;
use crate::session::FollowUp;

/// Index of a stack among the distinct ones.
pub(crate) type StackId = u32;

/// Distinct stacks that a profile keeps, of waits and of wakes. A stack has at most two kilobytes.
pub(crate) const MAX_STACKS: usize = 10_000;

/// One moment, and what was learned of the request that was chosen.
#[derive(Debug)]
pub(crate) struct Sample {
    /// How many moments there were before it, those with nothing in flight included.
    pub(crate) moment: u64,
    /// Requests in flight at that moment.
    pub(crate) in_flight: u32,
    pub(crate) route: Arc<str>,
    pub(crate) outcome: Outcome,
    /// Those of the child that was chosen with it.
    pub(crate) child: Waits,
    /// Whether the request polled that child itself.
    pub(crate) child_is_member: bool,
    /// Whether there were other children to choose from.
    pub(crate) has_several_children: bool,
    /// From where the request was woken out of this wait, among the `releases`.
    pub(crate) release: Option<StackId>,
    /// Whether the next poll after that was looked at for this sample: what it waits for is the first of the
    /// sample's `follow_ups`, and there is none if the request ended.
    pub(crate) is_followed: bool,
}

/// What is waited for at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waits {
    pub(crate) stacks: Vec<StackId>,
    /// Further ones, of which there is no stack.
    pub(crate) uncaptured: u32,
}

/// The state in which a sample found its request.
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

/// Everything that a profile is made from, with stacks as addresses.
#[derive(Default)]
pub(crate) struct Collected {
    pub(crate) samples: Vec<Sample>,
    pub(crate) runs: Runs,
    /// Moments at which nothing was in flight.
    pub(crate) idle: u64,
    /// Moments passed over because the sampler's thread got no CPU.
    pub(crate) missed: u64,
    pub(crate) waits: Stacks,
    pub(crate) releases: Stacks,
    pub(crate) follow_ups: Vec<FollowUp<StackId>>,
    /// From marking a waiting request to its poll.
    pub(crate) delays: Vec<Duration>,
    /// The time that each capture of a stack took.
    pub(crate) costs: Vec<Duration>,
    /// How long was sampled.
    pub(crate) elapsed: Duration,
    pub(crate) routes: HashMap<Arc<str>, RouteCount>,
    /// Requests that began before the profile and were first polled during it.
    pub(crate) late: u64,
    /// The time for which those were in flight unseen.
    pub(crate) late_time: Duration,
}

impl Collected {
    /// All moments that were sampled.
    pub(crate) fn moments(&self) -> u64 {
        self.samples.len() as u64 + self.idle
    }
}

/// Distinct stacks.
#[derive(Default)]
pub(crate) struct Stacks {
    pub(crate) distinct: Vec<RawStack>,
    ids: HashMap<RawStack, StackId>,
}

impl Stacks {
    /// The id of this stack, a new one if it was not seen before. None for one more than are kept.
    pub(crate) fn intern(&mut self, stack: RawStack) -> Option<StackId> {
        if let Some(&id) = self.ids.get(&stack) {
            return Some(id);
        }
        let id = self.distinct.len();
        let id = u32::try_from(id).ok().filter(|_| id < MAX_STACKS)?;
        self.distinct.push(stack.clone());
        self.ids.insert(stack, id);
        Some(id)
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
