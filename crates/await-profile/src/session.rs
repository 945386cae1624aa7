//! How polls send what they captured to the sampler.

use std::mem;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::lock::lock;

/// A call stack as addresses, innermost first.
pub(crate) type RawStack = Box<[usize]>;

/// A sample that awaits the next poll of the request it fell on.
pub(crate) struct Mark {
    pub(crate) session: Arc<Session>,
    /// Index of the sample within the session.
    pub(crate) sample: u32,
    pub(crate) at: Instant,
}

/// What a poll answers to the samples that waited for it.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The poll left the request waiting, and these are the stacks in which it
    /// registered its waker: more than one if it waits for several things at once. Of
    /// `uncaptured` further ones there is no stack.
    Waiting {
        stacks: Vec<RawStack>,
        uncaptured: u32,
    },
    /// The poll left the request waiting without registering a waker.
    Unregistered,
    /// Something else woke the request between the sample and the poll: what it had
    /// waited for is over.
    WokenFirst,
    /// The request ended, or was dropped, before its stack was captured.
    Finished,
}

/// One poll that answered one sample, or several that fell on the same request.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) samples: Vec<(u32, Duration)>,
    pub(crate) from_child: bool,
    pub(crate) answer: Answer,
    /// The time that each capture took.
    pub(crate) costs: Vec<Duration>,
}

/// The events of one profile that the sampler has not taken yet.
#[derive(Default)]
pub(crate) struct Session {
    events: Mutex<Vec<Event>>,
}

impl Session {
    pub(crate) fn take_events(&self) -> Vec<Event> {
        mem::take(&mut *lock(&self.events))
    }
}

/// Sends the answer to `marks` to their session. `polled` is when the poll began that
/// gives it.
pub(crate) fn answer(
    marks: &[Mark],
    polled: Instant,
    from_child: bool,
    answer: Answer,
    costs: Vec<Duration>,
) {
    // A profiler takes one profile at a time, but a mark may be left of an earlier one
    // that ended before this poll.
    let Some(last) = marks.last() else { return };
    let samples = marks
        .iter()
        .filter(|mark| Arc::ptr_eq(&mark.session, &last.session))
        .map(|mark| (mark.sample, polled.saturating_duration_since(mark.at)))
        .collect();
    lock(&last.session.events).push(Event {
        samples,
        from_child,
        answer,
        costs,
    });
}
