//! Captures the call stacks of a poll, as addresses.
//!
//! Libraries clone and wake wakers while they hold locks of their own. Tokio's mutex does, with all
//! its waiters queued behind that lock. So the code that runs there waits for nobody and
//! allocates nothing. Stacks go to memory that is reserved before the poll.
//!
//! `backtrace::trace` is not an option, because it takes the lock of `backtrace::resolve`.
//! `resolve` holds that lock while it reads debug information, which takes a second the first
//! time. An allocator that records its callers (dhat) takes it inside a lock of its own, so
//! allocating under it could deadlock.
#![allow(unsafe_code)]

use std::hint::black_box;
use std::sync::{Arc, Weak};
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

use crate::clone_hook::{Observer, poll_hooked};
use crate::lock::{lock, owned};
use crate::raw_stack::RawStack;
use crate::sync::{HAS_STACK, Mutex};

/// Most frames of a stack; deeper stacks are cut at their outer end.
const MAX_FRAMES: usize = 256;
/// Most clones in one poll whose stack is captured.
const MAX_STACKS: usize = 16;
/// Most wakes in one poll whose stack is captured. Few are needed: most futures keep a waker, and then
/// the stacks of wakes are not used.
const MAX_WAKES: usize = 2;

/// Stacks that were captured during one poll.
#[derive(Default)]
pub(crate) struct Captured {
    pub(crate) stacks: Vec<RawStack>,
    /// Clones of the waker, one for each stack. Empty if the stacks are those of wakes.
    pub(crate) clones: Vec<Weak<Kept>>,
    /// True if the future woke itself, so that it did not get to everything that it waits for.
    pub(crate) woke_itself: bool,
    /// Number of further clones, or wakes, whose stack was not captured.
    pub(crate) uncaptured: u32,
    pub(crate) costs: Vec<Duration>,
}

/// Unique clone of a waker. While it exists, the future that made it waits and has not been polled
/// since: a poll would have replaced it.
pub(crate) struct Kept(Waker);

impl Wake for Kept {
    fn wake(self: Arc<Self>) {
        // Drop this clone before the request can be polled. The waking thread may lose the CPU right after
        // the wake. The request would go on, and seem to hold a future that it does not poll.
        let executor = self.0.clone();
        drop(self);
        executor.wake();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.wake_by_ref();
    }
}

/// Stacks one after the other, in memory that is reserved beforehand.
struct Stacks {
    addresses: Vec<usize>,
    /// End of each stack in `addresses`, and the time that its capture took.
    ends: Vec<(usize, Duration)>,
    uncaptured: u32,
}

impl Stacks {
    fn with_room_for(stacks: usize) -> Self {
        Stacks {
            // Few stacks reach the largest depth.
            addresses: Vec::with_capacity(MAX_FRAMES * stacks.div_ceil(2)),
            ends: Vec::with_capacity(stacks),
            uncaptured: 0,
        }
    }

    /// Captures the stack from here out to the frame at `outermost`, if there is room. Returns whether there was.
    fn push(&mut self, outermost: usize) -> bool {
        let start = Instant::now();
        let from = self.addresses.len();
        let room = self.addresses.capacity() - from;
        if self.ends.len() == self.ends.capacity() || room < MAX_FRAMES {
            self.uncaptured = self.uncaptured.saturating_add(1);
            return false;
        }
        trace(outermost, |address| {
            self.addresses.push(address);
            self.addresses.len() - from < MAX_FRAMES
        });
        self.ends.push((self.addresses.len(), start.elapsed()));
        true
    }

    fn into_captured(self) -> Captured {
        let mut captured = Captured {
            uncaptured: self.uncaptured,
            ..Captured::default()
        };
        let mut start = 0;
        for (end, cost) in self.ends {
            captured
                .stacks
                .push(RawStack::from(&self.addresses[start..end]));
            captured.costs.push(cost);
            start = end;
        }
        captured
    }
}

/// Clones that are allocated before the poll.
struct Clones {
    spare: Vec<Arc<Kept>>,
    made: Vec<Weak<Kept>>,
}

struct Recorder<'a> {
    /// Waker that clones are made of.
    waker: &'a Waker,
    /// Address of a local variable of the frame that polls: stacks end there.
    outermost: usize,
    /// Stacks of clones. These three are behind locks because another thread may clone the waker too.
    /// No code waits for anything while it holds one.
    clones: Mutex<Stacks>,
    wakes: Mutex<Stacks>,
    kept: Mutex<Clones>,
}

impl Observer for Recorder<'_> {
    fn clone_waker(&self) -> Waker {
        if !lock(&self.clones).push(self.outermost) {
            return self.waker.clone();
        }
        let kept = &mut *lock(&self.kept);
        let Some(clone) = kept.spare.pop() else {
            return self.waker.clone();
        };
        kept.made.push(Arc::downgrade(&clone));
        clone.into()
    }

    fn wake(&self) {
        lock(&self.wakes).push(self.outermost);
        self.waker.wake_by_ref();
    }
}

/// Polls with a waker that captures the stack in which it is cloned. The clone is one of `waker`.
///
/// A future that wakes itself and returns pending keeps no waker. If no clone was made, the
/// result has the stacks in which the future woke itself.
#[inline(never)]
pub(crate) fn poll_recorded<R>(
    waker: &Waker,
    poll: impl FnOnce(&mut Context<'_>) -> R,
) -> (R, Captured) {
    let local = 0u8;
    let recorder = Recorder {
        waker,
        outermost: (&raw const *black_box(&local)).addr(),
        clones: Mutex::new(Stacks::with_room_for(MAX_STACKS)),
        wakes: Mutex::new(Stacks::with_room_for(MAX_WAKES)),
        kept: Mutex::new(Clones {
            spare: (0..MAX_STACKS)
                .map(|_| Arc::new(Kept(waker.clone())))
                .collect(),
            made: Vec::with_capacity(MAX_STACKS),
        }),
    };
    let result = poll_hooked(&recorder, poll);
    let (kept, woken) = (owned(recorder.clones), owned(recorder.wakes));
    let woke_itself = !woken.ends.is_empty();
    let captured = if kept.ends.is_empty() { woken } else { kept };
    let mut captured = captured.into_captured();
    captured.woke_itself = woke_itself;
    captured.clones = owned(recorder.kept).made;
    (result, captured)
}

/// Captures the whole stack from here outwards, as far as `addresses` has room.
pub(crate) fn capture_into(addresses: &mut Vec<usize>) {
    let room = addresses.capacity();
    trace(usize::MAX, |address| {
        if addresses.len() < room {
            addresses.push(address);
        }
        addresses.len() < room
    });
}

/// Calls `each` with the return addresses from here out to the frame at `outermost`, until it
/// returns false.
fn trace(outermost: usize, mut each: impl FnMut(usize) -> bool) {
    if !HAS_STACK {
        each(outermost);
        return;
    }
    let frame = |frame: &backtrace::Frame| {
        // A return address may be the first of the next function. The byte before it belongs to
        // the call.
        each(frame.ip().addr().saturating_sub(1))
            // Stacks grow downwards on every platform on which Rust has threads. So the frames of
            // the runtime below the poll have higher addresses. If the stack pointer is not known,
            // the stack is cut by names when it is resolved.
            && frame.sp().addr() <= outermost
    };
    // On some CPUs, Windows walks stacks with `dbghelp`, which only one thread at a time may use.
    #[cfg(windows)]
    backtrace::trace(frame);
    // SAFETY: only the use of `dbghelp` has to be synchronized, and only Windows has it.
    // Everywhere else `backtrace` calls `_Unwind_Backtrace`, which unwinds every panic. Any
    // number of threads may run it at once, and it keeps no state between calls. `frame` does
    // not unwind. The call neither allocates nor takes a lock of Rust's. (Before glibc 2.35
    // it reads the list of loaded libraries under the loader's lock, as every panic does.)
    #[cfg(not(windows))]
    unsafe {
        backtrace::trace_unsynchronized(frame);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_without_room_are_counted() {
        let ((), captured) = poll_recorded(Waker::noop(), |cx| {
            for _ in 0..30 {
                drop(cx.waker().clone());
            }
        });
        assert!(!captured.stacks.is_empty() && captured.stacks.len() <= MAX_STACKS);
        let all = captured.stacks.len() + captured.uncaptured as usize;
        assert_eq!((all, captured.costs.len()), (30, captured.stacks.len()));
    }

    /// Captures while another thread holds the lock of symbol look-ups.
    #[test]
    #[cfg_attr(miri, ignore = "needs real stacks")]
    #[cfg(not(windows))]
    fn a_stack_is_captured_while_another_thread_resolves() {
        let (captured, is_captured) = std::sync::mpsc::channel();
        let ((), here) = poll_recorded(Waker::noop(), |cx| drop(cx.waker().clone()));
        let mut resolving = false;
        let address = std::ptr::without_provenance_mut(here.stacks[0][0]);
        backtrace::resolve(address, |_| {
            if std::mem::replace(&mut resolving, true) {
                return;
            }
            let captured = captured.clone();
            std::thread::spawn(move || {
                let ((), stacks) = poll_recorded(Waker::noop(), |cx| drop(cx.waker().clone()));
                let _ = captured.send(stacks.stacks.len());
            });
            let stacks = is_captured.recv_timeout(Duration::from_secs(60));
            assert_eq!(stacks, Ok(1), "it waits for the lock");
        });
        assert!(resolving, "the address has no symbol");
    }
}
