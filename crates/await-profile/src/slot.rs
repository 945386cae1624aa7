//! One request in flight, as the sampler sees it.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;
use std::time::Instant;

use crate::session::Session;

/// The future is being polled.
const RUNNING: u8 = 1;
/// Its waker was woken since its last poll began.
const WOKEN: u8 = 2;
/// The sampler chose it; `marks` says for which samples.
const MARKED: u8 = 4;
/// It is over.
const GONE: u8 = 8;
/// Until the next poll, wakes are taken for the sampler's own.
const PROBED: u8 = 16;
/// A response body that gave its last piece and was not asked for the next yet.
const UNASKED: u8 = 32;

/// Locks, and does not care whether another thread panicked: nothing that is
/// kept under these locks is left half done.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A sample that awaits the next poll of the request it fell on.
pub(crate) struct Mark {
    pub(crate) session: Arc<Session>,
    /// Index of the sample within the session.
    pub(crate) sample: u32,
    pub(crate) at: Instant,
}

/// Why a request cannot be asked where it waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NotWaiting {
    /// Woken, not yet polled.
    Ready,
    /// Being polled.
    Running,
    /// A body whose next piece nobody asked for.
    Unasked,
    /// Over, hence not in flight at all.
    Gone,
}

/// What a request shares with the sampler. One is made for every request, so it is
/// kept small.
pub(crate) struct Slot {
    /// The bits above. Everything else is reached through a lock; the bits decide
    /// who may go where.
    state: AtomicU8,
    /// The profile during which the last poll was made, and with our own waker,
    /// so that `WOKEN` can be believed. 0: none.
    tracked_in: AtomicU32,
    /// Where in its shard it stands; written under the shard's lock.
    pub(crate) place: AtomicUsize,
    /// A child has its request's place in the registry and none itself.
    pub(crate) is_child: bool,
    pub(crate) shard: usize,
    /// Index into the shard's routes.
    pub(crate) route: usize,
    pub(crate) is_body: bool,
    /// Only known of requests that began while a profile was being taken.
    pub(crate) began: Option<Instant>,
    /// The executor's waker of the first poll.
    first_waker: Waker,
    rare: Mutex<Option<Box<Rare>>>,
}

/// What most requests never have.
#[derive(Default)]
pub(crate) struct Rare {
    pub(crate) marks: Vec<Mark>,
    children: Vec<Weak<Slot>>,
    /// The executor's waker of the last poll, if it is not that of the first.
    waker: Option<Waker>,
}

/// What [`Slot::new`] needs to know.
#[derive(Default)]
pub(crate) struct Registration {
    pub(crate) shard: usize,
    pub(crate) route: usize,
    pub(crate) is_body: bool,
    pub(crate) is_child: bool,
    pub(crate) began: Option<Instant>,
}

impl Slot {
    pub(crate) fn new(first_waker: Waker, registration: &Registration) -> Self {
        let Registration {
            shard,
            route,
            is_body,
            is_child,
            began,
        } = *registration;
        Slot {
            // It is registered by its first poll.
            state: AtomicU8::new(RUNNING),
            tracked_in: AtomicU32::new(0),
            place: AtomicUsize::new(0),
            is_child,
            shard,
            route,
            is_body,
            began,
            first_waker,
            rare: Mutex::new(None),
        }
    }

    /// What belongs to a request and is polled elsewhere.
    pub(crate) fn child(first_waker: Waker) -> Self {
        let registration = Registration {
            is_child: true,
            ..Registration::default()
        };
        Slot::new(first_waker, &registration)
    }

    /// Takes out what may own something else, so that a slot which nobody knows can be
    /// kept for another request.
    pub(crate) fn empty(&mut self) -> (Waker, Option<Box<Rare>>) {
        let waker = std::mem::replace(&mut self.first_waker, Waker::noop().clone());
        let rare = self.rare.get_mut().unwrap_or_else(PoisonError::into_inner);
        (waker, rare.take())
    }

    /// Starts a poll. Returns the marks that are to be answered by it, and
    /// whether the request was woken by anyone but the sampler.
    pub(crate) fn begin_poll(&self) -> (Vec<Mark>, bool) {
        let before = self.state.swap(RUNNING, Ordering::AcqRel);
        let marks = if before & MARKED == 0 {
            Vec::new()
        } else {
            self.take_marks()
        };
        (marks, before & WOKEN != 0)
    }

    /// Notes that a wake came through our waker.
    pub(crate) fn note_wake(&self) {
        let _ = self
            .state
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| {
                (state & (PROBED | WOKEN) == 0).then_some(state | WOKEN)
            });
    }

    /// To be called after [`begin_poll`](Self::begin_poll): whoever sees the profile's
    /// number must not see the state of an earlier poll, whose wakes were not noted.
    pub(crate) fn set_tracked_in(&self, generation: u32) {
        self.tracked_in.store(generation, Ordering::Release);
    }

    pub(crate) fn is_tracked_in(&self, generation: u32) -> bool {
        self.tracked_in.load(Ordering::Acquire) == generation
    }

    /// Ends a poll that did not finish the future.
    pub(crate) fn end_poll(&self, unasked: bool) {
        // Not a store: a wake during the poll has left its bit.
        self.state.fetch_xor(
            RUNNING | if unasked { UNASKED } else { 0 },
            Ordering::AcqRel,
        );
    }

    /// Notes that the future is over. Returns the marks nobody will answer.
    pub(crate) fn retire(&self) -> Vec<Mark> {
        self.state.fetch_or(GONE, Ordering::AcqRel);
        self.take_marks()
    }

    fn take_marks(&self) -> Vec<Mark> {
        let mut rare = lock(&self.rare);
        rare.as_mut()
            .map_or_else(Vec::new, |rare| std::mem::take(&mut rare.marks))
    }

    /// Asks the request to answer `mark` at its next poll, if it is waiting now.
    /// That poll is not caused here: see [`Slot::wake`]. With `probe`, wakes that
    /// come through our waker until that poll are taken for the sampler's own: it
    /// is about to wake a child that may pass the wake on.
    pub(crate) fn try_mark(&self, mark: Mark, probe: bool) -> Result<(), NotWaiting> {
        let bits = MARKED | if probe { PROBED } else { 0 };
        // The lock is held across the change of state, so that a poll which sees
        // `MARKED` finds the mark.
        let mut rare = lock(&self.rare);
        self.state
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| {
                not_waiting(state).is_none().then_some(state | bits)
            })
            .map_err(|state| not_waiting(state).unwrap_or(NotWaiting::Gone))?;
        rare.get_or_insert_default().marks.push(mark);
        Ok(())
    }

    /// The state at this moment, without marking anything.
    pub(crate) fn not_waiting(&self) -> Option<NotWaiting> {
        not_waiting(self.state.load(Ordering::Acquire))
    }

    /// The executor's waker of the first poll.
    pub(crate) fn first_waker(&self) -> &Waker {
        &self.first_waker
    }

    /// Keeps the executor's waker for the sampler. Whether it is another than before.
    /// As long as it is kept, no other waker can be taken for it.
    pub(crate) fn set_waker(&self, waker: &Waker) -> bool {
        let mut rare = lock(&self.rare);
        let kept = &mut rare.get_or_insert_default().waker;
        if kept.as_ref().unwrap_or(&self.first_waker).will_wake(waker) {
            return false;
        }
        let old = kept.replace(waker.clone());
        // It may own the task that we are in: drop it outside the lock.
        drop(rare);
        drop(old);
        true
    }

    /// Has the executor poll the request, without it counting as woken.
    pub(crate) fn wake(&self) {
        // No wake under the lock, for what it does is not known.
        let waker = lock(&self.rare)
            .as_ref()
            .and_then(|rare| rare.waker.clone());
        match waker {
            Some(waker) => waker.wake(),
            None => self.first_waker.wake_by_ref(),
        }
    }

    pub(crate) fn add_child(&self, child: &Arc<Slot>) {
        let mut rare = lock(&self.rare);
        let children = &mut rare.get_or_insert_default().children;
        // Amortised: at most one sweep for each doubling.
        if children.len() == children.capacity() {
            children.retain(|child| child.strong_count() > 0);
        }
        children.push(Arc::downgrade(child));
    }

    /// A child in flight, each with the same probability.
    pub(crate) fn any_child(&self, random: &mut fastrand::Rng) -> Option<Arc<Slot>> {
        // Dropped after the lock: theirs may be the last waker of a task.
        let mut over = Vec::new();
        let mut rare = lock(&self.rare);
        let children = &mut rare.as_mut()?.children;
        while !children.is_empty() {
            let chosen = random.usize(..children.len());
            match children[chosen].upgrade() {
                Some(child) if child.not_waiting() != Some(NotWaiting::Gone) => return Some(child),
                gone => {
                    children.swap_remove(chosen);
                    over.extend(gone);
                }
            }
        }
        None
    }
}

fn not_waiting(state: u8) -> Option<NotWaiting> {
    if state & GONE != 0 {
        Some(NotWaiting::Gone)
    } else if state & RUNNING != 0 {
        Some(NotWaiting::Running)
    } else if state & WOKEN != 0 {
        Some(NotWaiting::Ready)
    } else if state & UNASKED != 0 {
        Some(NotWaiting::Unasked)
    } else {
        None
    }
}
