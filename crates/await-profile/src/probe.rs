//! What is done around every poll of a wrapped future.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Waker};
use std::time::Instant;

use crate::noted::NotedSource;
use crate::profiler::{OFF, PROFILING, Shared};
use crate::session::{Answer, answer};
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
    route: Cow<'static, str>,
    kind: Kind,
    /// It was polled while the profiler was off.
    late: bool,
    /// A body may be polled after its end.
    over: bool,
    slot: Option<Arc<Slot>>,
    /// Identity of the executor's waker that the slot holds a clone of. As long as
    /// it does, no other waker can have the same.
    executor: Option<(usize, usize)>,
    /// Made from the executor's waker, for use while a profile is taken.
    noted: Option<Waker>,
}

enum Kind {
    Request,
    #[cfg_attr(
        not(feature = "tower"),
        expect(dead_code, reason = "only made by the layer")
    )]
    Body,
    /// Belongs to the request whose slot this is.
    Child(Arc<Slot>),
}

impl Probe {
    pub(crate) fn new(shared: &'static Shared, route: Cow<'static, str>) -> Self {
        Probe::of(Kind::Request, shared, route)
    }

    #[cfg(feature = "tower")]
    pub(crate) fn of_body(shared: &'static Shared, route: Cow<'static, str>) -> Self {
        Probe::of(Kind::Body, shared, route)
    }

    pub(crate) fn of_child(parent: Current) -> Self {
        Probe::of(
            Kind::Child(parent.request),
            parent.shared,
            Cow::Borrowed(""),
        )
    }

    fn of(kind: Kind, shared: &'static Shared, route: Cow<'static, str>) -> Self {
        Probe {
            shared,
            route,
            kind,
            late: false,
            over: false,
            slot: None,
            executor: None,
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
            self.register(mode);
        }
        let Some(slot) = &self.slot else {
            return poll(cx).into_result();
        };
        let request = if let Kind::Child(parent) = &self.kind {
            parent
        } else {
            slot
        };
        let mut turn = Turn::begin(
            slot,
            Current {
                shared: self.shared,
                request: request.clone(),
            },
        );
        let executor = identity(cx.waker());
        if self.executor != Some(executor) {
            self.noted = None;
        }

        let polled = if mode == PROFILING {
            slot.set_tracked_in(self.shared.generation.load(Ordering::Relaxed));
            let source = NotedSource::new(slot, cx.waker(), self.noted.take());
            let polled = if !turn.is_asked() || turn.woken {
                turn.answer(Answer::WokenFirst, Vec::new());
                source.poll(poll)
            } else {
                let (polled, seen) = poll_recorded(&source, poll);
                turn.answer_seen(matches!(polled, Polled::Waiting(_)), seen);
                polled
            };
            self.noted = source.into_noted();
            polled
        } else {
            // Leaves may now keep the executor's own waker, whose wakes are not noted.
            slot.set_tracked_in(0);
            turn.answer(Answer::WokenFirst, Vec::new());
            poll(cx)
        };

        if !matches!(polled, Polled::Over(_)) && self.executor != Some(executor) {
            slot.set_waker(cx.waker());
            self.executor = Some(executor);
        }
        match polled {
            Polled::Waiting(_) => turn.end(false),
            Polled::Unasked(_) => turn.end(true),
            Polled::Over(_) => {
                turn.end_over();
                self.over = true;
                self.retire();
            }
        }
        polled.into_result()
    }

    /// Enters the registry, if there is anything to enter.
    fn register(&mut self, mode: u8) {
        // Within another wrapper, it is that one which counts.
        let is_inner = || !matches!(self.kind, Kind::Child(_)) && Current::is_of(self.shared);
        if mode == OFF || self.over || is_inner() {
            return;
        }
        let registry = &self.shared.registry;
        let timed = mode == PROFILING && !self.late;
        self.slot = Some(match &self.kind {
            Kind::Request => registry.insert(&self.route, false, timed),
            Kind::Body => registry.insert(&format!("{} (response body)", self.route), true, false),
            Kind::Child(parent) => {
                let child = Arc::new(Slot::child(parent.shard, parent.route));
                parent.add_child(&child);
                child
            }
        });
        if self.late && mode == PROFILING && !matches!(self.kind, Kind::Child(_)) {
            self.shared.note_late();
        }
    }

    fn retire(&mut self) {
        let Some(mut slot) = self.slot.take() else {
            return;
        };
        if !slot.is_child {
            self.shared.registry.remove(&slot);
        }
        // Nobody else knows it: there are no marks, and nothing that could be woken.
        if Arc::get_mut(&mut slot).is_some() {
            return;
        }
        let marks = slot.retire();
        if !marks.is_empty() {
            answer(
                &marks,
                Instant::now(),
                slot.is_child,
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

/// Tells wakers apart. As long as a clone of one is kept, no other has the same.
fn identity(waker: &Waker) -> (usize, usize) {
    (
        waker.data().addr(),
        std::ptr::from_ref(waker.vtable()).addr(),
    )
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.retire();
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
