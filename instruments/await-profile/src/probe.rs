//! Steps of a wrapped future before and after each of its polls.

use std::sync::{Arc, Weak};
use std::task::{Context, Waker};
use std::time::Instant;

use crate::capture::poll_recorded;
use crate::label::Label;
use crate::poll_guard::{Current, Home, PollGuard};
use crate::routes::Ending;
use crate::session::{Answer, Whose, answer};
use crate::shared::{Shared, State};
use crate::slot::Slot;
use crate::timing::Timing;
use crate::tracking_waker::tracking_waker;

/// State of the future after a poll, with the result of the poll.
pub(crate) enum Polled<T> {
    /// The future is pending.
    Pending(T),
    /// A body returned a frame, and the server has to poll for the next.
    #[cfg_attr(
        not(feature = "tower"),
        expect(dead_code, reason = "only bodies do this")
    )]
    Yielded(T),
    /// The future has ended in this way.
    Done(T, Ending),
}

/// State that a wrapped future carries for the profiler.
pub(crate) struct Probe {
    home: Home,
    route: Label,
    kind: Kind,
    /// True if the future was polled while the profiler was off.
    late: bool,
    /// True if the future has ended. A body may be polled after that.
    done: bool,
    /// True if a poll had another waker than the first.
    waker_changed: bool,
    /// Tracking waker, made when first needed. It is kept so that leaf futures need not clone another one.
    tracking_waker: Option<Waker>,
}

enum Kind {
    Request,
    /// A response body, a wait for a service, or a task of no request: counted apart from requests.
    Part,
    /// A child of the request that has this slot. The request may end first.
    Child(Weak<Slot>),
}

impl Probe {
    pub(crate) fn new(shared: Arc<Shared>, route: Label) -> Self {
        Probe::of(Kind::Request, Some(shared), route)
    }

    /// Returns the probe of a wait for a service, or of a task that belongs to no request.
    pub(crate) fn of_part(shared: Option<Arc<Shared>>, name: Label) -> Self {
        Probe::of(Kind::Part, shared, name)
    }

    /// Returns the probe of a response's body. `self` is the probe of its request, which has ended and
    /// hands over its reference to the profiler.
    #[cfg(feature = "tower")]
    pub(crate) fn take_for_body(&mut self) -> Self {
        let name = Label::concat(&[ecosystem::BODY_OF, self.route.as_str()]);
        Probe::of_part(self.home.shared.take(), name)
    }

    /// Returns the probe of a child of the request that this thread is polling, if any.
    pub(crate) fn of_child() -> Self {
        let (parent, shared) = match Current::get() {
            Some(parent) => (Arc::downgrade(&parent.request), Some(parent.shared)),
            None => (Weak::new(), None),
        };
        Probe::of(Kind::Child(parent), shared, Label::from(""))
    }

    fn of(kind: Kind, shared: Option<Arc<Shared>>, route: Label) -> Self {
        Probe {
            home: Home { shared, slot: None },
            route,
            kind,
            late: false,
            done: false,
            waker_changed: false,
            tracking_waker: None,
        }
    }

    /// Returns whether a poll may go straight to the future. This check is all that a profiler costs while off.
    #[inline]
    pub(crate) fn is_off(&mut self) -> bool {
        let off = match (&self.home.slot, &self.home.shared) {
            // A registered request stays registered until it ends.
            (Some(_), _) => false,
            (None, Some(shared)) => shared.state().is_off(),
            (None, None) => true,
        };
        self.late |= off;
        off
    }

    pub(crate) fn poll<T>(
        &mut self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Polled<T>,
    ) -> T {
        let state = match &self.home.shared {
            Some(shared) => shared.state(),
            None => return poll(cx).into_result(),
        };
        if self.home.slot.is_none() {
            self.register(state, cx.waker());
        }
        let Some(slot) = &self.home.slot else {
            return poll(cx).into_result();
        };
        if self.waker_changed || !slot.first_waker().will_wake(cx.waker()) {
            self.waker_changed = true;
            if slot.set_waker(cx.waker()) {
                self.tracking_waker = None;
            }
        }
        let (mut tracking, mut generation) = (None, 0);
        if state.is_tracking() {
            let made = &mut self.tracking_waker;
            tracking = Some(&*made.get_or_insert_with(|| tracking_waker(slot, cx.waker())));
            generation = state.generation();
        }
        let parent = match &self.kind {
            Kind::Child(parent) => parent.upgrade(),
            Kind::Request | Kind::Part => None,
        };
        let Some(mut guard) = PollGuard::begin(&mut self.home, parent, generation) else {
            return poll(cx).into_result();
        };

        let polled = match tracking {
            Some(tracking) if guard.is_captured() => {
                let (polled, captured) = poll_recorded(tracking, poll);
                guard.answer_captured(matches!(polled, Polled::Pending(_)), captured);
                polled
            }
            Some(tracking) => {
                guard.answer(&Answer::WokenFirst, &[]);
                poll(&mut Context::from_waker(tracking))
            }
            None => {
                guard.answer(&Answer::WokenFirst, &[]);
                poll(cx)
            }
        };

        match polled {
            Polled::Pending(_) => guard.end(false),
            Polled::Yielded(_) => guard.end(true),
            Polled::Done(_, ending) => {
                guard.end_done();
                self.done = true;
                self.retire(ending);
            }
        }
        polled.into_result()
    }

    /// Registers the future, unless the profiler is off.
    fn register(&mut self, state: State, waker: &Waker) {
        let Some(shared) = &self.home.shared else {
            return;
        };
        if state.is_off() || self.done {
            return;
        }
        // If wrappers are nested, only the outermost one counts.
        if !matches!(self.kind, Kind::Child(_)) && Current::is_of(shared) {
            return;
        }
        let (registry, route) = (&shared.registry, &self.route);
        let timing = match (self.late, state.is_profiling()) {
            (true, _) => Timing::Nothing,
            (false, false) => Timing::Latency,
            (false, true) => Timing::Profile,
        };
        self.home.slot = Some(match &self.kind {
            Kind::Request => registry.insert(route, waker.clone(), false, timing),
            Kind::Part => registry.insert(route, waker.clone(), true, timing),
            Kind::Child(parent) => {
                let child = Arc::new(Slot::child(waker.clone()));
                if let Some(parent) = parent.upgrade() {
                    parent.add_child(&child);
                }
                child
            }
        });
        if self.late && state.is_profiling() && !matches!(self.kind, Kind::Child(_)) {
            shared.count_late();
        }
    }

    /// Removes the future from the registry.
    fn retire(&mut self, ending: Ending) {
        let (Some(slot), Some(shared)) = (self.home.slot.take(), &self.home.shared) else {
            return;
        };
        self.tracking_waker = None;
        let (marks, whose) = if slot.is_child {
            (slot.retire(), Whose::Spawned)
        } else {
            let marks = shared.registry.remove(slot, ending);
            (marks, Whose::Request)
        };
        if !marks.is_empty() {
            answer(&marks, Instant::now(), whose, &Answer::Finished, &[]);
        }
    }
}

impl<T> Polled<T> {
    fn into_result(self) -> T {
        match self {
            Polled::Pending(result) | Polled::Yielded(result) | Polled::Done(result, _) => result,
        }
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.retire(Ending::Dropped);
    }
}
