//! Capturing the call stacks of a poll, as addresses.

use std::hint::black_box;
use std::sync::Mutex;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use crate::clone_hook::{Observer, poll_hooked};
use crate::lock::lock;
use crate::session::RawStack;

/// Deeper stacks are cut at their outer end.
const MAX_FRAMES: usize = 256;
/// Of further clones in one poll no stack is captured.
const MAX_STACKS: usize = 16;

/// What was captured during one poll.
#[derive(Default)]
pub(crate) struct Captured {
    pub(crate) stacks: Vec<RawStack>,
    pub(crate) costs: Vec<Duration>,
}

struct Recorder<'a> {
    /// The waker that a clone is a clone of.
    waker: &'a Waker,
    /// Address of a local variable of the frame that polls: stacks end there.
    outermost: usize,
    /// Behind locks because another thread may clone the waker too.
    clones: Mutex<Captured>,
    wakes: Mutex<Captured>,
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

/// Polls with a waker that captures the stack in which it is cloned; the clone is one of
/// `waker`.
///
/// A future that wakes itself and returns pending keeps no waker. If no clone was made,
/// the stacks are those in which it woke itself.
#[inline(never)]
pub(crate) fn poll_recorded<R>(
    waker: &Waker,
    poll: impl FnOnce(&mut Context<'_>) -> R,
) -> (R, Captured) {
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
    let captured = if kept.stacks.is_empty() { woken } else { kept };
    (result, captured)
}

fn record(captured: &Mutex<Captured>, outermost: usize) {
    let start = Instant::now();
    let mut captured = lock(captured);
    if captured.stacks.len() == MAX_STACKS {
        return;
    }
    let stack = addresses(outermost);
    captured.stacks.push(stack);
    captured.costs.push(start.elapsed());
}

/// The return addresses from here out to the frame at `outermost`.
fn addresses(outermost: usize) -> RawStack {
    if cfg!(miri) {
        // Miri has no machine stack to walk; it checks all the rest.
        return Box::new([outermost]);
    }
    let mut addresses = Vec::with_capacity(64);
    backtrace::trace(|frame| {
        // A return address may be the first of the next function. The byte before it
        // belongs to the call.
        addresses.push(frame.ip().addr().saturating_sub(1));
        // Stacks grow downwards on every platform Rust has threads on, so the
        // frames of the runtime below the poll lie above it. Where the stack
        // pointer is not known, names end the stack when it is resolved.
        addresses.len() < MAX_FRAMES && frame.sp().addr() <= outermost
    });
    addresses.into()
}
