//! What the samples of a profile say, before it is made from them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::session::RawStack;

/// Index of a stack among the distinct ones.
pub(crate) type StackId = u32;

/// One moment, and what was learned of the request that was chosen.
#[derive(Debug)]
pub(crate) struct Sample {
    /// Requests in flight at that moment.
    pub(crate) in_flight: u32,
    pub(crate) route: Arc<str>,
    pub(crate) seen: SeenAs,
    /// Stacks of the child that was chosen with it.
    pub(crate) child: Vec<StackId>,
}

/// The state in which a sample found its request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SeenAs {
    Waiting(Vec<StackId>),
    Unregistered,
    Unasked,
    Ready,
    Running,
    WokenFirst,
    Finished,
    /// It waited, and its executor did not poll it before the profile ended.
    Unanswered,
}

/// Everything a profile is made from, with addresses still unresolved.
#[derive(Default)]
pub(crate) struct Collected {
    pub(crate) samples: Vec<Sample>,
    /// Moments at which nothing was in flight.
    pub(crate) idle: u64,
    /// Moments given up because the sampler itself got no processor.
    pub(crate) missed: u64,
    pub(crate) stacks: Vec<RawStack>,
    ids: HashMap<RawStack, StackId>,
    pub(crate) delays: Vec<Duration>,
    pub(crate) costs: Vec<Duration>,
    pub(crate) elapsed: Duration,
}

impl Collected {
    /// The number of this stack.
    pub(crate) fn intern(&mut self, stack: RawStack) -> StackId {
        if let Some(&id) = self.ids.get(&stack) {
            return id;
        }
        let id = u32::try_from(self.stacks.len()).unwrap_or(u32::MAX);
        self.stacks.push(stack.clone());
        self.ids.insert(stack, id);
        id
    }
}
