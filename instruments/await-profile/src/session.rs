//! How polls send what they captured to the sampler.

use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::lock::lock;
use crate::sync::Mutex;

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

/// Whose poll it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Whose {
    /// That of a request.
    Request,
    /// That of a child, by its request: that is what the request waits for, or a part of it.
    Member,
    /// That of a child, by somebody else: the request may wait for it or not.
    Spawned,
}

/// One poll that answered one sample, or several that fell on the same request.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) samples: Vec<(u32, Duration)>,
    pub(crate) whose: Whose,
    pub(crate) answer: Answer,
    /// The time that each capture took.
    pub(crate) costs: Vec<Duration>,
}

/// A request whose stack was captured, until something wakes it.
pub(crate) struct Watch {
    session: Arc<Session>,
    /// The samples that found it where it waits.
    samples: Vec<u32>,
    /// Where it was woken, with room for that from the start: a wake may happen under any
    /// lock.
    pub(crate) woken_from: Vec<usize>,
}

/// Deeper stacks of wakes are cut at their outer end.
const MAX_WAKE_FRAMES: usize = 128;

impl Watch {
    /// Of the samples that these marks stand for, and of those of an earlier poll in the same
    /// wait.
    pub(crate) fn of(marks: &[Mark], earlier: Option<Box<Watch>>) -> Option<Box<Self>> {
        let session = &marks.last()?.session;
        let is_same = |watch: &Watch| Arc::ptr_eq(&watch.session, session);
        let new = || {
            Box::new(Watch {
                session: session.clone(),
                samples: Vec::new(),
                woken_from: Vec::with_capacity(MAX_WAKE_FRAMES),
            })
        };
        let mut watch = earlier.filter(|watch| is_same(watch)).unwrap_or_else(new);
        let of_session = marks
            .iter()
            .filter(|mark| Arc::ptr_eq(&mark.session, session));
        watch.samples.extend(of_session.map(|mark| mark.sample));
        Some(watch)
    }

    /// Sends to the sampler where the request was woken, if that is known.
    pub(crate) fn send(self) {
        if self.woken_from.is_empty() {
            return;
        }
        let stack = RawStack::from(self.woken_from);
        lock(&self.session.releases).push((self.samples, stack));
    }
}

/// The events of one profile that the sampler has not taken yet.
#[derive(Default)]
pub(crate) struct Session {
    events: Mutex<Vec<Event>>,
    /// Samples, and where the wait ended that they fell on.
    releases: Mutex<Vec<(Vec<u32>, RawStack)>>,
}

impl Session {
    pub(crate) fn take_events(&self) -> Vec<Event> {
        mem::take(&mut *lock(&self.events))
    }

    pub(crate) fn take_releases(&self) -> Vec<(Vec<u32>, RawStack)> {
        mem::take(&mut *lock(&self.releases))
    }
}

/// Sends the answer to `marks` to their session. `began` is when the poll began that
/// gives it.
pub(crate) fn answer(
    marks: &[Mark],
    began: Instant,
    whose: Whose,
    answer: Answer,
    costs: Vec<Duration>,
) {
    // A profiler takes one profile at a time, but a mark may be left of an earlier one
    // that ended before this poll.
    let Some(last) = marks.last() else { return };
    let samples = marks
        .iter()
        .filter(|mark| Arc::ptr_eq(&mark.session, &last.session))
        .map(|mark| (mark.sample, began.saturating_duration_since(mark.at)))
        .collect();
    lock(&last.session.events).push(Event {
        samples,
        whose,
        answer,
        costs,
    });
}
