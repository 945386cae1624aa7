//! Reasons for which threads are busy in a function, by what it calls and by who calls it.

use ecosystem::Work;

use super::table;
use crate::evidence::Evidence;
use crate::finding::Advice;
use crate::threads::seen::{Callers, function, in_state, only_awaits, work_at};
use crate::threads::{Stack, State};

/// Reason for which threads are busy in a function.
pub(crate) enum Why {
    /// It hardly computes: its tasks are woken again and again, or talk to the system.
    Awaits,
    /// It is called at several lines for one request.
    Callers(Callers),
    /// It has a library do a well-known work, or is that library's.
    Work(&'static Work),
}

impl Why {
    /// Returns why threads are busy in the function of `most`.
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
        let work = work_at(&stacks, function).map(Self::Work);
        // A library of futures may be what makes it busy.
        if !work.as_ref().is_some_and(Self::is_avoidable) && only_awaits(&stacks, function) {
            return Some(Self::Awaits);
        }
        if let Some(callers) = Callers::of(&stacks, function) {
            return Some(Self::Callers(callers));
        }
        work
    }

    /// Returns whether this is more than it has to compute: it can be done once, or elsewhere.
    pub(crate) fn is_avoidable(&self) -> bool {
        match self {
            Self::Awaits => false,
            Self::Callers(_) => true,
            Self::Work(work) => work.is_avoidable,
        }
    }

    pub(crate) fn advice(&self) -> Advice {
        match self {
            Self::Awaits => table::WAKE_UPS,
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
            Self::Awaits | Self::Work(_) => None,
        }
    }
}
