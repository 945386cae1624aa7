//! Reasons for which a function of the service computes more than it has to.

use ecosystem::Work;

use super::table;
use crate::evidence::Evidence;
use crate::finding::Advice;
use crate::threads::seen::{Callers, function, in_state, work_at};
use crate::threads::{Stack, State};

/// Reason for which a function computes more than it has to.
pub(crate) enum Why {
    /// It is called at several lines for one request.
    Callers(Callers),
    /// It has a library do what can be done once, or elsewhere.
    Work(&'static Work),
}

impl Why {
    /// Returns why the function of `most` computes.
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
            return Some(Self::Callers(callers));
        }
        let work = work_at(&stacks, function)?;
        work.is_avoidable.then_some(Self::Work(work))
    }

    pub(crate) fn advice(&self) -> Advice {
        match self {
            Self::Callers(_) => table::SAME_WORK,
            Self::Work(work) => Advice {
                cause: work.cause,
                fix: work.fix,
            },
        }
    }

    /// Returns the evidence, as a sentence; `None` if the cause says it.
    pub(crate) fn seen(&self) -> Option<String> {
        match self {
            Self::Callers(callers) => Some(format!("It is called at several lines of {callers}.")),
            Self::Work(_) => None,
        }
    }
}
