//! Guard of one poll of a wrapped future: its end restores what its begin changed.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::capture::Captured;
use crate::session::{Answer, Mark, Watch, Whose, answer};
use crate::shared::Shared;
use crate::slot::Slot;
use crate::sync::thread_local;

thread_local! {
    /// Request that this thread is polling.
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

/// Request that is being polled. A child that is made during the poll belongs to it.
#[derive(Clone)]
pub(crate) struct Current {
    pub(crate) shared: Arc<Shared>,
    pub(crate) request: Arc<Slot>,
    whose: Whose,
}

/// References of a wrapped future. During a poll they are lent to the thread, which costs less than
/// counting further references.
pub(crate) struct Home {
    /// Profiler of the future. None if it belongs to none.
    pub(crate) shared: Option<Arc<Shared>>,
    /// Entry of the future in the registry, once it has one.
    pub(crate) slot: Option<Arc<Slot>>,
}

impl Current {
    pub(crate) fn get() -> Option<Self> {
        CURRENT.with(|current| current.borrow().clone())
    }

    /// Returns whether this thread is in a poll that this profiler tracks.
    pub(crate) fn is_of(shared: &Arc<Shared>) -> bool {
        CURRENT.with(|current| match &*current.borrow() {
            Some(current) => Arc::ptr_eq(&current.shared, shared),
            None => false,
        })
    }

    /// Returns whether this thread polls `request`, or a part of it in one poll with the request.
    fn is_within(request: &Arc<Slot>) -> bool {
        CURRENT.with(|current| match &*current.borrow() {
            Some(outer) => outer.whose != Whose::Spawned && Arc::ptr_eq(&outer.request, request),
            None => false,
        })
    }
}

/// One poll. A panic drops the guard, which then ends the poll of the slot.
pub(crate) struct PollGuard<'a> {
    /// References of the future. During the poll they are in `CURRENT`, except for the slot of a child.
    home: &'a mut Home,
    whose: Whose,
    marks: Vec<Mark>,
    /// Watch over samples whose wait goes on.
    watch: Option<Box<Watch>>,
    /// Start of the poll, if a sample waits for it.
    began: Option<Instant>,
    outer: Option<Current>,
    ended: bool,
    /// True if something other than the sampler woke the request.
    pub(crate) woken: bool,
}

impl<'a> PollGuard<'a> {
    /// Begins a poll of the future whose slot is in `home`. `generation` is the number of the
    /// current profile if the poll gets a tracking waker, otherwise 0. Returns None if there is no
    /// slot or no profiler.
    pub(crate) fn begin(
        home: &'a mut Home,
        parent: Option<Arc<Slot>>,
        generation: u32,
    ) -> Option<Self> {
        let slot = home.slot.as_ref()?;
        let shared = home.shared.take()?;
        let found = slot.begin_poll();
        slot.set_tracked_in(generation);
        let is_child = slot.is_child;
        let request = match parent {
            Some(parent) => parent,
            None => home.slot.take()?,
        };
        let whose = if !is_child {
            Whose::Request
        } else if Current::is_within(&request) {
            Whose::Member
        } else {
            Whose::Spawned
        };
        let current = Current {
            shared,
            request,
            whose,
        };
        let outer = CURRENT.with(|outer| outer.replace(Some(current)));
        let began = if found.marks.is_empty() {
            None
        } else {
            Some(Instant::now())
        };
        let mut watch = found.watch;
        if let (true, Some(over)) = (found.woken, &mut watch) {
            over.send();
            if !over.follows_polls() {
                watch = None;
            }
        }
        if generation == 0 {
            watch = None;
        }
        Some(PollGuard {
            home,
            whose,
            marks: found.marks,
            watch,
            began,
            outer,
            ended: false,
            woken: found.woken,
        })
    }

    /// Returns whether to capture what this poll registers: a sample waits for it, or a watch needs to see
    /// which waits it leaves.
    pub(crate) fn is_captured(&self) -> bool {
        if self.woken {
            self.watch.is_some()
        } else {
            !self.marks.is_empty()
        }
    }

    pub(crate) fn answer(&mut self, with: &Answer, costs: &[Duration]) {
        if let Some(began) = self.began.take() {
            answer(&self.marks, began, self.whose, with, costs);
            self.marks.clear();
        }
    }

    pub(crate) fn answer_captured(&mut self, waiting: bool, captured: Captured) {
        if self.woken {
            self.answer(&Answer::WokenFirst, &[]);
        } else if waiting && !captured.stacks.is_empty() && self.whose == Whose::Request {
            self.watch = Watch::of(&self.marks, self.watch.take());
        }
        if let Some(watch) = &mut self.watch {
            let is_wait = waiting && !captured.stacks.is_empty() && !captured.woke_itself;
            let goes_on = is_wait && watch.follow(&captured);
            // A wait that has not been woken stays watched, to record who wakes it.
            if self.woken && !goes_on {
                self.watch = None;
            }
        }
        let with = match (waiting, captured.stacks.is_empty()) {
            (true, false) => Answer::Waiting {
                stacks: captured.stacks,
                uncaptured: captured.uncaptured,
            },
            (true, true) => Answer::Unregistered,
            (false, _) => Answer::Finished,
        };
        self.answer(&with, &captured.costs);
    }

    /// Ends a poll whose future goes on. `backpressured` says that it is a body that returned a frame.
    pub(crate) fn end(mut self, backpressured: bool) {
        self.ended = true;
        let watch = self.watch.take();
        if let Some(slot) = self.give_back() {
            slot.end_poll(backpressured, watch);
        }
    }

    /// Ends a poll whose future has ended.
    pub(crate) fn end_done(mut self) {
        self.ended = true;
        self.give_back();
    }

    /// Makes the outer request current again, and moves back what was lent.
    fn give_back(&mut self) -> Option<&Slot> {
        let outer = self.outer.take();
        let ours = CURRENT.with(|current| current.replace(outer));
        if let Some(Current {
            shared, request, ..
        }) = ours
        {
            self.home.shared = Some(shared);
            // Outside the borrow: dropping a child's reference may drop its request.
            self.home.slot.get_or_insert(request);
        }
        self.home.slot.as_deref()
    }
}

impl Drop for PollGuard<'_> {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        // The poll panicked.
        self.answer(&Answer::Finished, &[]);
        if let Some(slot) = self.give_back() {
            slot.end_poll(false, None);
        }
    }
}
