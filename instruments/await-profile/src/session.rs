//! How polls send what they captured to the sampler.

use std::mem;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crate::capture::{Captured, Kept};
use crate::lock::lock;
use crate::raw_stack::RawStack;
use crate::sync::Mutex;

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

/// A request whose stack was captured, until something wakes it; and for some polls after that, if it may
/// have futures that these do not poll.
pub(crate) struct Watch {
    session: Arc<Session>,
    /// The samples that found it where it waits.
    samples: Vec<u32>,
    /// Where it was woken, with room for that from the start: a wake may happen under any
    /// lock.
    pub(crate) woken_from: Vec<usize>,
    /// The first of all its samples.
    first: u32,
    /// The waits of polls before, and when those were.
    kept: Vec<(Weak<Kept>, RawStack, Instant)>,
    /// Those of the last one.
    last: Vec<RawStack>,
    /// Further polls that are captured without a sample.
    polls_left: u8,
    /// Of these, so many whatever they show: whether the same line is met again.
    looked_ahead: u8,
}

/// What a later poll of a request, of which there is a sample, left as it was.
#[derive(Debug)]
pub(crate) struct FollowUp<S> {
    /// The first sample of the request.
    pub(crate) sample: u32,
    pub(crate) at: Instant,
    /// From where it was woken to this poll. None if that is not known, or the sampler did it.
    pub(crate) woken_from: Option<S>,
    /// Waits that go on, though this poll did not reach their futures; and for how long they are so.
    pub(crate) left: Vec<(S, Duration)>,
    /// What was waited for in this poll.
    pub(crate) waits: Vec<S>,
    /// Of these, what the request still waits for after it: a future that ended in it may have cloned the waker
    /// before.
    pub(crate) open: Vec<S>,
}

/// A wait ended.
pub(crate) struct Wake {
    /// The samples that fell on it.
    pub(crate) samples: Vec<u32>,
    /// Whether its request had no sample for some polls before.
    pub(crate) is_first: bool,
    /// From where it was woken.
    pub(crate) stack: RawStack,
}

/// Deeper stacks of wakes are cut at their outer end.
const MAX_WAKE_FRAMES: usize = 128;
/// So many polls after a sample are captured at most, and most of them are not.
const MAX_FOLLOWED: u8 = 8;
/// A loop may have so many waits in a round.
pub(crate) const LOOKED_AHEAD: u8 = 4;

impl Watch {
    /// Of the samples that these marks stand for, and of those of an earlier poll in the same
    /// wait.
    pub(crate) fn of(marks: &[Mark], earlier: Option<Box<Watch>>) -> Option<Box<Self>> {
        let last = marks.last()?;
        let session = &last.session;
        let is_same = |watch: &Watch| Arc::ptr_eq(&watch.session, session);
        let new = || {
            Box::new(Watch {
                session: session.clone(),
                samples: Vec::new(),
                woken_from: Vec::with_capacity(MAX_WAKE_FRAMES),
                first: last.sample,
                kept: Vec::new(),
                last: Vec::new(),
                polls_left: MAX_FOLLOWED,
                looked_ahead: 0,
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
    pub(crate) fn send(&mut self) {
        if self.samples.is_empty() || self.woken_from.is_empty() {
            return;
        }
        let stack = RawStack::from(&*self.woken_from);
        let samples = mem::take(&mut self.samples);
        lock(&self.session.releases).push(Wake {
            is_first: samples.first() == Some(&self.first),
            samples,
            stack,
        });
    }

    /// Tells the sampler what a poll that left the request waiting did not reach, and keeps what it captured.
    /// Whether the next poll may be worth as much: if the request waits for several things, or was woken for
    /// something else than what it waits for.
    pub(crate) fn follow(&mut self, captured: &Captured) -> bool {
        let now = Instant::now();
        let was_woken = !self.woken_from.is_empty();
        // A future that this poll reached has another clone by now, or none.
        self.kept.retain(|(kept, ..)| kept.strong_count() > 0);
        let left = self
            .kept
            .iter()
            .map(|(_, stack, since)| (stack.clone(), now - *since));
        let left: Vec<_> = left.collect();
        let waits = &captured.stacks;
        let is_of_interest = waits.len() > 1
            || !left.is_empty()
            || self.last.iter().any(|last| waits.contains(last));
        if !self.last.is_empty() {
            lock(&self.session.follow_ups).push(FollowUp {
                sample: self.first,
                at: now,
                woken_from: was_woken.then(|| RawStack::from(&*self.woken_from)),
                left,
                waits: waits.clone(),
                open: std::iter::zip(&captured.clones, waits)
                    .filter(|(clone, _)| clone.strong_count() > 0)
                    .map(|(_, stack)| stack.clone())
                    .collect(),
            });
        }
        let clones = std::iter::zip(&captured.clones, waits);
        self.kept
            .extend(clones.map(|(kept, stack)| (kept.clone(), stack.clone(), now)));
        self.last.clone_from(waits);
        self.woken_from.clear();
        self.polls_left = self.polls_left.saturating_sub(was_woken.into());
        self.looked_ahead += u8::from(was_woken);
        (is_of_interest || self.looked_ahead < LOOKED_AHEAD) && self.polls_left > 0
    }
}

/// The events of one profile that the sampler has not taken yet.
#[derive(Default)]
pub(crate) struct Session {
    events: Mutex<Vec<Event>>,
    /// Samples, and where the wait ended that they fell on.
    releases: Mutex<Vec<Wake>>,
    follow_ups: Mutex<Vec<FollowUp<RawStack>>>,
}

impl Session {
    pub(crate) fn take_events(&self) -> Vec<Event> {
        mem::take(&mut *lock(&self.events))
    }

    pub(crate) fn take_releases(&self) -> Vec<Wake> {
        mem::take(&mut *lock(&self.releases))
    }

    pub(crate) fn take_follow_ups(&self) -> Vec<FollowUp<RawStack>> {
        mem::take(&mut *lock(&self.follow_ups))
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
