//! What is done around every poll of a wrapped future.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::task::{Context, Waker};
use std::time::Instant;

use crate::label::Label;
use crate::noted::noted_waker;
use crate::session::{Answer, answer};
use crate::shared::{OFF, PROFILING, Shared};
use crate::slot::{Slot, lock};
use crate::stack::poll_recorded;
use crate::turn::{Current, Turn};

/// Outcome of a poll, together with what to return to the executor.
pub(crate) enum Polled<T> {
    /// The future wants to be woken.
    Waiting(T),
    /// A body gave a piece and waits for being asked for the next.
    #[cfg_attr(
        not(feature = "tower"),
        expect(dead_code, reason = "only bodies do this")
    )]
    Unasked(T),
    /// The future has ended.
    Over(T),
}

/// What a wrapped future carries for the profiler.
pub(crate) struct Probe {
    shared: &'static Shared,
    route: Label,
    kind: Kind,
    /// It was polled while the profiler was off.
    late: bool,
    /// A body may be polled after its end.
    over: bool,
    /// The executor's waker is, or was, another than the slot's first.
    moved: bool,
    slot: Option<Arc<Slot>>,
    /// Passes wakes on to the executor's waker, for use while a profile is taken.
    noted: Option<Waker>,
}

enum Kind {
    Request,
    #[cfg_attr(
        not(feature = "tower"),
        expect(dead_code, reason = "only made by the layer")
    )]
    Body,
    /// Belongs to the request whose slot this is, and may outlive it.
    Child(Weak<Slot>),
}

impl Probe {
    pub(crate) fn new(shared: &'static Shared, route: Label) -> Self {
        Probe::of(Kind::Request, shared, route)
    }

    #[cfg(feature = "tower")]
    pub(crate) fn of_body(shared: &'static Shared, route: Label) -> Self {
        Probe::of(Kind::Body, shared, route)
    }

    pub(crate) fn of_child(parent: &Current) -> Self {
        Probe::of(
            Kind::Child(Arc::downgrade(&parent.request)),
            parent.shared,
            Label::from(""),
        )
    }

    fn of(kind: Kind, shared: &'static Shared, route: Label) -> Self {
        Probe {
            shared,
            route,
            kind,
            late: false,
            over: false,
            moved: false,
            slot: None,
            noted: None,
        }
    }

    /// The flag test: whether a poll may go straight to the future.
    #[inline]
    pub(crate) fn is_off(&mut self) -> bool {
        // A slot stays until the future is over, so that the registry is true.
        let off = self.slot.is_none() && self.shared.mode() == OFF;
        self.late |= off;
        off
    }

    pub(crate) fn poll<T>(
        &mut self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Polled<T>,
    ) -> T {
        let mode = self.shared.mode();
        if self.slot.is_none() {
            self.register(mode, cx.waker());
        }
        let Some(slot) = &self.slot else {
            return poll(cx).into_result();
        };
        if self.moved || !slot.first_waker().will_wake(cx.waker()) {
            self.moved = true;
            if slot.set_waker(cx.waker()) {
                self.noted = None;
            }
        }
        let noted = (mode == PROFILING).then(|| {
            let make = || noted_waker(slot, cx.waker());
            &*self.noted.get_or_insert_with(make)
        });
        let generation = noted.map_or(0, |_| self.shared.generation.load(Ordering::Relaxed));
        let parent = match &self.kind {
            Kind::Child(parent) => parent.upgrade(),
            Kind::Request | Kind::Body => None,
        };
        let Some(mut turn) = Turn::begin(self.shared, &mut self.slot, parent, generation) else {
            return poll(cx).into_result();
        };

        let polled = match noted {
            Some(noted) if turn.is_asked() && !turn.woken => {
                let (polled, seen) = poll_recorded(noted, poll);
                turn.answer_seen(matches!(polled, Polled::Waiting(_)), seen);
                polled
            }
            Some(noted) => {
                turn.answer(Answer::WokenFirst, Vec::new());
                // The same as in earlier polls, so that leaves need not clone it anew.
                poll(&mut Context::from_waker(noted))
            }
            None => {
                turn.answer(Answer::WokenFirst, Vec::new());
                poll(cx)
            }
        };

        match polled {
            Polled::Waiting(_) => turn.end(false),
            Polled::Unasked(_) => turn.end(true),
            Polled::Over(_) => {
                turn.end_over();
                self.over = true;
                self.retire(true);
            }
        }
        polled.into_result()
    }

    /// Enters the registry, if there is anything to enter.
    fn register(&mut self, mode: u8, waker: &Waker) {
        // Within another wrapper, it is that one which counts.
        let is_inner = || !matches!(self.kind, Kind::Child(_)) && Current::is_of(self.shared);
        if mode == OFF || self.over || is_inner() {
            return;
        }
        let (registry, route) = (&self.shared.registry, &self.route);
        let timed = mode == PROFILING && !self.late;
        self.slot = Some(match &self.kind {
            Kind::Request => registry.insert(route, waker.clone(), false, timed),
            Kind::Body => {
                let route = Label::concat(&[route.as_str(), " (response body)"]);
                registry.insert(&route, waker.clone(), true, false)
            }
            Kind::Child(parent) => {
                let child = Arc::new(Slot::child(waker.clone()));
                if let Some(parent) = parent.upgrade() {
                    parent.add_child(&child);
                }
                child
            }
        });
        if self.late && mode == PROFILING && !matches!(self.kind, Kind::Child(_)) {
            self.shared.note_late();
        }
    }

    /// Leaves the registry, if it was entered.
    fn retire(&mut self, finished: bool) {
        let Some(slot) = self.slot.take() else {
            return;
        };
        self.noted = None;
        let is_child = slot.is_child;
        let marks = if is_child {
            slot.retire()
        } else {
            self.shared.registry.remove(slot, finished)
        };
        if !marks.is_empty() {
            answer(
                &marks,
                Instant::now(),
                is_child,
                Answer::Finished,
                Vec::new(),
            );
        }
    }
}

impl<T> Polled<T> {
    fn into_result(self) -> T {
        match self {
            Polled::Waiting(result) | Polled::Unasked(result) | Polled::Over(result) => result,
        }
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.retire(false);
    }
}

impl Shared {
    fn note_late(&self) {
        if let Some(started) = *lock(&self.started) {
            let nanos = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.late.fetch_add(1, Ordering::Relaxed);
            self.late_nanos.fetch_add(nanos, Ordering::Relaxed);
        }
    }
}
