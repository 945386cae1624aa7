//! One poll of a wrapped future.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::session::{Answer, answer};
use crate::shared::Shared;
use crate::slot::{Mark, Slot};
use crate::stack::Seen;

thread_local! {
    /// What this thread is polling.
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

/// The request that a child made now would belong to.
#[derive(Clone)]
pub(crate) struct Current {
    pub(crate) shared: &'static Shared,
    pub(crate) request: Arc<Slot>,
}

impl Current {
    pub(crate) fn get() -> Option<Self> {
        CURRENT.with_borrow(Clone::clone)
    }

    /// Whether this thread is within a poll that this profiler knows of.
    pub(crate) fn is_of(shared: &'static Shared) -> bool {
        CURRENT.with_borrow(|current| {
            current
                .as_ref()
                .is_some_and(|current| std::ptr::eq(current.shared, shared))
        })
    }
}

/// One poll. Dropped by a panic in it, it still leaves the slot as it should be.
pub(crate) struct Turn<'a> {
    /// Where the slot belongs. That of a request is the thread's current one meanwhile,
    /// which costs less than another reference to it.
    home: &'a mut Option<Arc<Slot>>,
    is_child: bool,
    marks: Vec<Mark>,
    /// When it began, if a sample waits for it.
    began: Option<Instant>,
    outer: Option<Current>,
    ended: bool,
    /// Someone else than the sampler woke the request for it.
    pub(crate) woken: bool,
}

impl<'a> Turn<'a> {
    /// Begins a poll of what has the slot in `home`, with a waker that notes wakes if
    /// a `generation` of profiles is given, otherwise 0. None if there is no slot.
    pub(crate) fn begin(
        shared: &'static Shared,
        home: &'a mut Option<Arc<Slot>>,
        parent: Option<Arc<Slot>>,
        generation: u32,
    ) -> Option<Self> {
        let slot = home.as_ref()?;
        let (marks, woken) = slot.begin_poll();
        slot.set_tracked_in(generation);
        let is_child = slot.is_child;
        let request = parent.or_else(|| home.take())?;
        let current = Current { shared, request };
        let outer = CURRENT.with_borrow_mut(|inner| inner.replace(current));
        let began = (!marks.is_empty()).then(Instant::now);
        Some(Turn {
            home,
            is_child,
            marks,
            began,
            outer,
            ended: false,
            woken,
        })
    }

    /// Whether a sample waits for this poll.
    pub(crate) fn is_asked(&self) -> bool {
        !self.marks.is_empty()
    }

    pub(crate) fn answer(&mut self, with: Answer, costs: Vec<Duration>) {
        if let Some(began) = self.began.take() {
            answer(&self.marks, began, self.is_child, with, costs);
            self.marks.clear();
        }
    }

    pub(crate) fn answer_seen(&mut self, waiting: bool, seen: Seen) {
        let with = match (waiting, seen.stacks.is_empty()) {
            (true, false) => Answer::Waiting(seen.stacks),
            (true, true) => Answer::Unregistered,
            (false, _) => Answer::Finished,
        };
        self.answer(with, seen.costs);
    }

    /// The future goes on. `unasked` if it is a body that gave a piece.
    pub(crate) fn end(mut self, unasked: bool) {
        self.ended = true;
        if let Some(slot) = self.give_back() {
            slot.end_poll(unasked);
        }
    }

    /// The future is over.
    pub(crate) fn end_over(mut self) {
        self.ended = true;
        self.give_back();
    }

    /// Makes current what was before. The slot is where it belongs again.
    fn give_back(&mut self) -> Option<&Slot> {
        let outer = self.outer.take();
        let ours = CURRENT.with_borrow_mut(|current| std::mem::replace(current, outer));
        // Outside the borrow, for a child's may be the last that holds its request.
        if self.home.is_none() {
            *self.home = ours.map(|ours| ours.request);
        }
        self.home.as_deref()
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        // The poll panicked.
        self.answer(Answer::Finished, Vec::new());
        if let Some(slot) = self.give_back() {
            slot.end_poll(false);
        }
    }
}
