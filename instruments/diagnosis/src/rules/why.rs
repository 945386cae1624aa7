//! Reasons for which a function of the service computes more than it has to.

use crate::evidence::Evidence;
use crate::threads::seen::{Callers, function, in_state, work_at};
use crate::threads::{Stack, State};

/// Reason for which a function computes more than it has to.
pub(crate) struct Why {
    /// The evidence, as a sentence after others; empty if the cause says it.
    pub(crate) seen: String,
    pub(crate) cause: &'static str,
    pub(crate) fix: &'static str,
}

impl Why {
    /// Returns why the function of `most` computes: it is called at several lines for one request, or it has a library do
    /// what can be done once.
    pub(crate) fn of(evidence: &Evidence, most: &Stack) -> Option<Self> {
        let function = function(most)?;
        let mut stacks: Vec<&Stack> = Vec::new();
        if let Some(threads) = &evidence.threads {
            stacks.extend(in_state(&threads.run_requests(), State::Running));
        }
        if let Some(cpu) = &evidence.cpu {
            for thread in cpu.run_requests() {
                stacks.extend(&thread.stacks);
            }
        }
        if let Some(callers) = Callers::of(&stacks, function) {
            return Some(Self {
                seen: format!(" It is called at several lines of {callers}."),
                cause: "One request does the same work several times.",
                fix: "Do it once for each request, and pass the result on.",
            });
        }
        let work = work_at(&stacks, function).filter(|work| work.is_avoidable)?;
        Some(Self {
            seen: String::new(),
            cause: work.cause,
            fix: work.fix,
        })
    }
}
