//! What is done around every poll of a wrapped future.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Waker};
use std::time::Instant;

use crate::profiler::{ARMED, OFF, PROFILING, Shared};
use crate::session::{Answer, answer};
use crate::slot::{Mark, NotedWaker, Slot, lock};
use crate::stack::{Seen, poll_recorded};

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

thread_local! {
    /// The request, or child of one, that this thread is polling.
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

/// The request that a new child would belong to.
#[derive(Clone)]
pub(crate) struct Current {
    shared: &'static Shared,
    request: Arc<Slot>,
}

impl Current {
    pub(crate) fn get() -> Option<Self> {
        CURRENT.with_borrow(Clone::clone)
    }
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
        if self.slot.is_none() && !self.register(mode) {
            return match poll(cx) {
                Polled::Waiting(result) | Polled::Unasked(result) | Polled::Over(result) => result,
            };
        }
        let Some(slot) = self.slot.clone() else {
            unreachable!("registered above")
        };
        self.keep_waker(&slot, cx.waker());
        let (marks, woken) = slot.begin_poll();
        let mut turn = Turn::new(self, &slot, marks);

        let polled = if mode == PROFILING {
            let shared = turn.probe.shared;
            let waker = turn.probe.noted_waker(&slot, cx.waker());
            let generation = shared.generation.load(Ordering::Relaxed);
            slot.tracked_in.store(generation, Ordering::Relaxed);
            if turn.marks.is_empty() || woken {
                turn.answer(Answer::WokenFirst);
                poll(&mut Context::from_waker(&waker))
            } else {
                let (polled, seen) = poll_recorded(&waker, poll);
                turn.answer_seen(matches!(polled, Polled::Waiting(_)), seen);
                polled
            }
        } else {
            // Leaves may now keep the executor's own waker, whose wakes are not noted.
            slot.tracked_in.store(0, Ordering::Relaxed);
            turn.answer(Answer::WokenFirst);
            poll(cx)
        };
        turn.end(polled)
    }

    /// Enters the registry. False if there is nothing to enter.
    #[cold]
    fn register(&mut self, mode: u8) -> bool {
        if mode == OFF || self.over {
            return false;
        }
        let began = (mode == PROFILING && !self.late).then(Instant::now);
        let slot = match &self.kind {
            Kind::Child(parent) => {
                let child = Arc::new(Slot::child(parent.shard, parent.route));
                parent.add_child(&child);
                child
            }
            // Within another wrapper, which is the one that counts.
            _ if Current::get()
                .is_some_and(|current| std::ptr::eq(current.shared, self.shared)) =>
            {
                return false;
            }
            Kind::Body => {
                self.shared
                    .registry
                    .insert(&format!("{} (response body)", self.route), true, began)
            }
            Kind::Request => self.shared.registry.insert(&self.route, false, began),
        };
        if self.late && mode == PROFILING && !slot.is_child {
            self.shared.note_late();
        }
        self.slot = Some(slot);
        true
    }

    /// Keeps the executor's waker up to date in the slot.
    fn keep_waker(&mut self, slot: &Slot, waker: &Waker) {
        let identity = (
            waker.data().addr(),
            std::ptr::from_ref(waker.vtable()).addr(),
        );
        if self.executor != Some(identity) {
            slot.set_waker(waker);
            self.executor = Some(identity);
            self.noted = None;
        }
    }

    fn noted_waker(&mut self, slot: &Arc<Slot>, real: &Waker) -> Waker {
        self.noted
            .get_or_insert_with(|| NotedWaker::waker(slot.clone(), real.clone()))
            .clone()
    }

    fn retire(&mut self) {
        let Some(slot) = self.slot.take() else { return };
        if !slot.is_child {
            self.shared.registry.remove(&slot);
        }
        let marks = slot.retire();
        answer(
            &marks,
            Instant::now(),
            slot.is_child,
            Answer::Finished,
            Vec::new(),
        );
    }
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

/// One poll. Dropped by a panic in it, it still leaves the slot as it should be.
struct Turn<'a> {
    probe: &'a mut Probe,
    slot: &'a Slot,
    began: Option<Instant>,
    marks: Vec<Mark>,
    outer: Option<Current>,
    ended: bool,
}

impl<'a> Turn<'a> {
    fn new(probe: &'a mut Probe, slot: &'a Arc<Slot>, marks: Vec<Mark>) -> Self {
        let request = match &probe.kind {
            Kind::Child(parent) => parent.clone(),
            _ => slot.clone(),
        };
        let current = Current {
            shared: probe.shared,
            request,
        };
        let outer = CURRENT.with_borrow_mut(|inner| inner.replace(current));
        let began = (!marks.is_empty()).then(Instant::now);
        Turn {
            probe,
            slot,
            began,
            marks,
            outer,
            ended: false,
        }
    }

    fn answer(&mut self, with: Answer) {
        self.answer_with(with, Vec::new());
    }

    fn answer_with(&mut self, with: Answer, costs: Vec<std::time::Duration>) {
        let Some(began) = self.began.take() else {
            return;
        };
        answer(&self.marks, began, self.slot.is_child, with, costs);
        self.marks.clear();
    }

    fn answer_seen(&mut self, waiting: bool, seen: Seen) {
        let with = match (waiting, seen.stacks.is_empty()) {
            (true, false) => Answer::Waiting(seen.stacks),
            (true, true) => Answer::Unregistered,
            (false, _) => Answer::Finished,
        };
        self.answer_with(with, seen.costs);
    }

    fn end<T>(mut self, polled: Polled<T>) -> T {
        self.ended = true;
        match polled {
            Polled::Waiting(result) => {
                self.slot.end_poll(false);
                result
            }
            Polled::Unasked(result) => {
                self.slot.end_poll(true);
                result
            }
            Polled::Over(result) => {
                self.slot.finished.store(true, Ordering::Relaxed);
                self.probe.over = true;
                self.probe.retire();
                result
            }
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let outer = self.outer.take();
        let ours = CURRENT.with_borrow_mut(|current| std::mem::replace(current, outer));
        drop(ours);
        if !self.ended {
            // The poll panicked.
            self.answer(Answer::Finished);
            self.slot.end_poll(false);
        }
    }
}

const _: () = assert!(OFF < ARMED && ARMED < PROFILING);
