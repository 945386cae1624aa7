//! One request in flight: the state that its polls share with the sampler.

use std::cell::Cell;
use std::sync::{Arc, Weak};
use std::task::Waker;
use std::time::Instant;

use crate::capture::capture_into;
use crate::lock::lock;
use crate::session::{Mark, Watch};
use crate::sync::{AtomicU8, AtomicU32, AtomicUsize, Mutex, Ordering, thread_local};
use crate::task;
use crate::timing::Timing;

/// The future is being polled.
const RUNNING: u8 = 1;
/// Its waker was woken since its last poll began.
const WOKEN: u8 = 2;
/// The sampler chose it, for the samples in `marks`.
const MARKED: u8 = 4;
/// The future has ended, or was dropped.
const GONE: u8 = 8;
/// It is a response body that the server has not polled since its last frame.
const BACKPRESSURED: u8 = 16;
/// Its stack was captured, and its next wake is to record the stack that it comes from.
const WATCHED: u8 = 32;

thread_local! {
    /// Request whose child the sampler is waking on this thread. If the child wakes its request
    /// at once, that wake counts as the sampler's own.
    static PROBED: Cell<*const Slot> = const { Cell::new(std::ptr::null()) };
}

/// Reason why no poll can tell where a request waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NotWaiting {
    /// Woken and not yet polled.
    Ready,
    /// Being polled.
    Running,
    /// A body that the server has not polled since its last frame.
    Backpressured,
    /// Ended, and so not in flight at all.
    Gone,
}

/// State that a request shares with the sampler. Every request needs one, so it is small.
pub(crate) struct Slot {
    /// Bits of the constants above.
    state: AtomicU8,
    /// Number of the profile during which the last poll was made, if that poll got a tracking
    /// waker, so that `WOKEN` is complete. Otherwise 0.
    tracked_in: AtomicU32,
    /// Its index in its shard, written under the shard's lock.
    pub(crate) place: AtomicUsize,
    /// True for a child, which is found through its request and not in the registry.
    pub(crate) is_child: bool,
    pub(crate) shard: usize,
    /// Index into the shard's routes.
    pub(crate) route: usize,
    /// True for a response body or a wait for a service, which are counted apart from requests.
    pub(crate) is_part: bool,
    /// Start of the request, and what its time counts for, if it is one of those that are timed.
    pub(crate) timed: Option<(Instant, Timing)>,
    /// Number that tells it apart in its shard during a tail profile, if it began during one. Otherwise 0.
    pub(crate) number: u32,
    /// Executor's waker of the first poll.
    first_waker: Waker,
    rare: Mutex<Option<Box<Rare>>>,
}

/// Parts of the state that most requests never need.
#[derive(Default)]
pub(crate) struct Rare {
    pub(crate) marks: Vec<Mark>,
    children: Vec<Weak<Slot>>,
    watch: Option<Box<Watch>>,
    /// Executor's waker of the last poll, if it differs from that of the first.
    waker: Option<Waker>,
}

/// State that a poll finds when it begins.
#[derive(Default)]
pub(crate) struct Begun {
    /// Marks that the poll has to answer.
    pub(crate) marks: Vec<Mark>,
    /// True if something other than the sampler woke the request.
    pub(crate) woken: bool,
    pub(crate) watch: Option<Box<Watch>>,
}

impl Slot {
    /// Returns the slot of a request, or of a part of one, that the registry knows.
    pub(crate) fn request(
        first_waker: Waker,
        shard: usize,
        route: usize,
        is_part: bool,
        timed: Option<(Instant, Timing)>,
    ) -> Self {
        Slot {
            is_child: false,
            shard,
            route,
            is_part,
            timed,
            ..Slot::child(first_waker)
        }
    }

    /// Returns the slot of a part of a request that is polled elsewhere. The registry does not know it.
    pub(crate) fn child(first_waker: Waker) -> Self {
        Slot {
            // The first poll makes the slot, so it is running.
            state: AtomicU8::new(RUNNING),
            tracked_in: AtomicU32::new(0),
            place: AtomicUsize::new(0),
            is_child: true,
            shard: 0,
            route: 0,
            is_part: false,
            timed: None,
            number: 0,
            first_waker,
            rare: Mutex::new(None),
        }
    }

    /// Returns the start of the request, if it is one of those that are timed.
    pub(crate) fn began(&self) -> Option<Instant> {
        self.timed.map(|(began, _)| began)
    }

    /// Takes out everything that may own something else, so that the slot can be reused for another
    /// request.
    pub(crate) fn empty(&mut self) -> (Waker, Option<Box<Rare>>) {
        let waker = std::mem::replace(&mut self.first_waker, Waker::noop().clone());
        let rare = match self.rare.get_mut() {
            Ok(rare) => rare,
            Err(poisoned) => poisoned.into_inner(),
        };
        (waker, rare.take())
    }

    /// Begins a poll.
    pub(crate) fn begin_poll(&self) -> Begun {
        let before = self.state.swap(RUNNING, Ordering::AcqRel);
        let mut begun = Begun {
            woken: before & WOKEN != 0,
            ..Begun::default()
        };
        if before & (MARKED | WATCHED) != 0
            && let Some(rare) = lock(&self.rare).as_mut()
        {
            begun.marks = std::mem::take(&mut rare.marks);
            begun.watch = rare.watch.take();
        }
        begun
    }

    /// Records that a tracking waker was woken, unless the sampler did it.
    pub(crate) fn record_wake(&self) {
        if std::ptr::eq(PROBED.with(Cell::get), self) {
            return;
        }
        let before = self.state.fetch_or(WOKEN, Ordering::AcqRel);
        if before & (WATCHED | WOKEN) == WATCHED {
            self.record_release();
        }
    }

    /// Captures the stack that wakes the request. The waking code may hold any lock, so this
    /// allocates nothing. If a poll has begun in the meantime, it captures nothing.
    #[cold]
    fn record_release(&self) {
        if let Ok(mut rare) = self.rare.try_lock()
            && let Some(Rare {
                watch: Some(watch), ..
            }) = rare.as_deref_mut()
        {
            capture_into(&mut watch.woken_from);
            watch.woken_by = Some((Instant::now(), task::number()));
        }
    }

    /// Records the profile during which this poll is made, or 0. Call it after
    /// [`begin_poll`](Self::begin_poll): a thread that reads the profile's number must not read the
    /// state of an earlier poll, whose wakes were not recorded.
    pub(crate) fn set_tracked_in(&self, generation: u32) {
        self.tracked_in.store(generation, Ordering::Release);
    }

    pub(crate) fn is_tracked_in(&self, generation: u32) -> bool {
        self.tracked_in.load(Ordering::Acquire) == generation
    }

    /// Ends a poll that did not finish the future. With a watch, the next wake is captured.
    pub(crate) fn end_poll(&self, backpressured: bool, watch: Option<Box<Watch>>) {
        let mut bits = RUNNING | if backpressured { BACKPRESSURED } else { 0 };
        if watch.is_some() {
            bits |= WATCHED;
            lock(&self.rare).get_or_insert_default().watch = watch;
        }
        // Not a store: a wake during the poll has left its bit.
        self.state.fetch_xor(bits, Ordering::AcqRel);
    }

    /// Records that the future has ended, and returns the marks that no poll will answer.
    pub(crate) fn retire(&self) -> Vec<Mark> {
        self.state.fetch_or(GONE, Ordering::AcqRel);
        self.take_marks()
    }

    fn take_marks(&self) -> Vec<Mark> {
        match lock(&self.rare).as_mut() {
            Some(rare) => std::mem::take(&mut rare.marks),
            None => Vec::new(),
        }
    }

    /// Makes the next poll answer `mark`, if the request is waiting now. Call [`Slot::wake`] to
    /// cause that poll.
    pub(crate) fn try_mark(&self, mark: Mark) -> Result<(), NotWaiting> {
        // The lock is held across the change of state, so that a poll which sees `MARKED` finds
        // the mark.
        let mut rare = lock(&self.rare);
        let marked =
            self.state.fetch_update(
                Ordering::AcqRel,
                Ordering::Acquire,
                |state| match not_waiting(state) {
                    Some(_) => None,
                    None => Some(state | MARKED),
                },
            );
        if let Err(state) = marked {
            return Err(not_waiting(state).unwrap_or(NotWaiting::Gone));
        }
        rare.get_or_insert_default().marks.push(mark);
        Ok(())
    }

    /// Returns why the request is not waiting, or None if it waits. Marks nothing.
    pub(crate) fn not_waiting(&self) -> Option<NotWaiting> {
        not_waiting(self.state.load(Ordering::Acquire))
    }

    /// Returns the executor's waker of the first poll.
    pub(crate) fn first_waker(&self) -> &Waker {
        &self.first_waker
    }

    /// Keeps the executor's waker of this poll, and returns whether it differs from the one before.
    /// While it is kept, `will_wake` cannot mistake a new waker for it.
    pub(crate) fn set_waker(&self, waker: &Waker) -> bool {
        let mut rare = lock(&self.rare);
        let kept = &mut rare.get_or_insert_default().waker;
        if kept.as_ref().unwrap_or(&self.first_waker).will_wake(waker) {
            return false;
        }
        let old = kept.replace(waker.clone());
        // The old waker may own the task that is being polled: drop it outside the lock.
        drop(rare);
        drop(old);
        true
    }

    /// Makes the executor poll the request. This does not count as a wake of the request.
    pub(crate) fn wake(&self) {
        // Outside the lock: a wake may run any code.
        let waker = match lock(&self.rare).as_ref() {
            Some(rare) => rare.waker.clone(),
            None => None,
        };
        match waker {
            Some(waker) => waker.wake(),
            None => self.first_waker.wake_by_ref(),
        }
    }

    /// Makes the executor poll a child of this request. If the child wakes the request in turn, that
    /// does not count as a wake of the request.
    pub(crate) fn wake_child(&self, child: &Slot) {
        struct Reset;
        impl Drop for Reset {
            fn drop(&mut self) {
                PROBED.with(|probed| probed.set(std::ptr::null()));
            }
        }
        PROBED.with(|probed| probed.set(self));
        let _reset = Reset;
        child.wake();
    }

    pub(crate) fn add_child(&self, child: &Arc<Slot>) {
        let mut rare = lock(&self.rare);
        let children = &mut rare.get_or_insert_default().children;
        // Swept once before each doubling, so the cost of a child stays constant.
        if children.len() == children.capacity() {
            children.retain(|child| child.strong_count() > 0);
        }
        children.push(Arc::downgrade(child));
    }

    /// Returns one child in flight, each with the same probability, and whether there are others.
    pub(crate) fn any_child(&self, random: &mut fastrand::Rng) -> Option<(Arc<Slot>, bool)> {
        // Dropped after the lock is released: a child may own the last waker of a task.
        let mut over = Vec::new();
        let mut rare = lock(&self.rare);
        let children = &mut rare.as_mut()?.children;
        let mut chosen = None;
        while chosen.is_none() && !children.is_empty() {
            let index = random.usize(..children.len());
            chosen = in_flight(&children[index], &mut over);
            if chosen.is_none() {
                children.swap_remove(index);
            }
        }
        let chosen = chosen?;
        let mut has_others = false;
        for child in &*children {
            if let Some(other) = in_flight(child, &mut over) {
                has_others = !Arc::ptr_eq(&other, &chosen);
                over.push(other);
            }
            if has_others {
                break;
            }
        }
        drop(rare);
        Some((chosen, has_others))
    }
}

fn in_flight(child: &Weak<Slot>, over: &mut Vec<Arc<Slot>>) -> Option<Arc<Slot>> {
    let child = child.upgrade()?;
    if child.not_waiting() == Some(NotWaiting::Gone) {
        over.push(child);
        return None;
    }
    Some(child)
}

fn not_waiting(state: u8) -> Option<NotWaiting> {
    if state & GONE != 0 {
        Some(NotWaiting::Gone)
    } else if state & RUNNING != 0 {
        Some(NotWaiting::Running)
    } else if state & WOKEN != 0 {
        Some(NotWaiting::Ready)
    } else if state & BACKPRESSURED != 0 {
        Some(NotWaiting::Backpressured)
    } else {
        None
    }
}
