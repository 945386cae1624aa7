//! Taking the call stack, as addresses and nothing else.

use std::ffi::c_void;
use std::hint::black_box;
use std::sync::Mutex;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use crate::clone_hook::{Observer, poll_hooked};
use crate::session::RawStack;
use crate::slot::lock;

/// Deeper stacks are cut at their outer end.
const MAX_FRAMES: usize = 256;
/// Clones beyond this many in one poll are counted and not looked at.
const MAX_STACKS: usize = 16;

/// What was seen during one poll.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) stacks: Vec<RawStack>,
    pub(crate) costs: Vec<Duration>,
}

struct Recorder<'a> {
    /// What is given away instead.
    waker: &'a Waker,
    /// Address of a local of the frame that polls: stacks end there.
    outermost: usize,
    /// Behind locks because another thread may clone the waker too.
    clones: Mutex<Seen>,
    wakes: Mutex<Seen>,
}

impl Observer for Recorder<'_> {
    fn clone_waker(&self) -> Waker {
        record(&self.clones, self.outermost);
        self.waker.clone()
    }

    fn wake(&self) {
        record(&self.wakes, self.outermost);
        self.waker.wake_by_ref();
    }
}

/// Polls with a waker that records the stack of whoever keeps it, which is a clone of
/// `waker` then.
///
/// A future that wakes itself and returns pending keeps no waker. It is recorded
/// where it woke itself, if nothing else was recorded.
#[inline(never)]
pub(crate) fn poll_recorded<R>(
    waker: &Waker,
    poll: impl FnOnce(&mut Context<'_>) -> R,
) -> (R, Seen) {
    let local = 0u8;
    let recorder = Recorder {
        waker,
        outermost: (&raw const *black_box(&local)).addr(),
        clones: Mutex::default(),
        wakes: Mutex::default(),
    };
    let result = poll_hooked(&recorder, poll);
    let kept = std::mem::take(&mut *lock(&recorder.clones));
    let woken = std::mem::take(&mut *lock(&recorder.wakes));
    let seen = if kept.stacks.is_empty() { woken } else { kept };
    (result, seen)
}

fn record(seen: &Mutex<Seen>, outermost: usize) {
    let start = Instant::now();
    let mut seen = lock(seen);
    if seen.stacks.len() == MAX_STACKS {
        return;
    }
    let stack = addresses(outermost);
    seen.stacks.push(stack);
    seen.costs.push(start.elapsed());
}

/// The return addresses from here out to the frame at `outermost`.
fn addresses(outermost: usize) -> RawStack {
    if cfg!(miri) {
        // Miri has no machine stack to walk, and is asked about all the rest.
        return Box::new([outermost]);
    }
    let mut addresses = Vec::with_capacity(64);
    backtrace::trace(|frame| {
        // A return address may already belong to the next function; the byte
        // before it belongs to the call.
        addresses.push(frame.ip().addr().saturating_sub(1));
        // Stacks grow downwards on every platform Rust has threads on, so the
        // frames of the runtime below the poll lie above it. Where the stack
        // pointer is not known, names end the stack when it is resolved.
        addresses.len() < MAX_FRAMES && frame.sp().addr() <= outermost
    });
    addresses.into()
}

/// What `backtrace::resolve` wants to be given.
pub(crate) fn as_pointer(address: usize) -> *mut c_void {
    std::ptr::without_provenance_mut(address)
}
