//! What one profile collects while it is being taken.

use std::mem;
use std::sync::Mutex;
use std::time::Duration;

use crate::slot::{Mark, lock};

/// A call stack as addresses, innermost first.
pub(crate) type RawStack = Box<[usize]>;

/// What became of a sample.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The poll left the request waiting, and these are the stacks in which it
    /// registered its waker: more than one if it waits for several things at once.
    Waiting(Vec<RawStack>),
    /// The poll left it waiting without registering a waker.
    Unregistered,
    /// Something else woke it between the choice and the poll: what it had been
    /// waiting for cannot be seen any more.
    WokenFirst,
    /// It ended, or was dropped, before it could be seen waiting.
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

/// The letter box of one profile.
#[derive(Default)]
pub(crate) struct Session {
    events: Mutex<Vec<Event>>,
}

impl Session {
    pub(crate) fn take_events(&self) -> Vec<Event> {
        mem::take(&mut *lock(&self.events))
    }
}

/// Tells the session that `marks` belong to what became of them. `polled` is when
/// the poll began that settled them.
pub(crate) fn answer(
    marks: &[Mark],
    polled: std::time::Instant,
    from_child: bool,
    answer: Answer,
    costs: Vec<Duration>,
) {
    // A profiler takes one profile at a time, yet a mark may be left over from one
    // that ended without an answer.
    let Some(last) = marks.last() else { return };
    let samples = marks
        .iter()
        .filter(|mark| std::sync::Arc::ptr_eq(&mark.session, &last.session))
        .map(|mark| (mark.sample, polled.saturating_duration_since(mark.at)))
        .collect();
    lock(&last.session.events).push(Event {
        samples,
        from_child,
        answer,
        costs,
    });
}
