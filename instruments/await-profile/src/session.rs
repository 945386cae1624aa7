//! Messages from polls to the sampler.

use std::mem;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crate::capture::{Captured, Kept};
use crate::lock::lock;
use crate::raw_stack::RawStack;
use crate::sync::Mutex;

/// Use of samples. Each may go on once at a time, beside the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A profile, which ends.
    Profile,
    /// Counts of waits, which go on.
    Counts,
}

/// Mark of a sample that waits for the next poll of its request.
pub(crate) struct Mark {
    pub(crate) session: Arc<Session>,
    /// Index of the sample within the session.
    pub(crate) sample: u32,
    pub(crate) at: Instant,
}

/// Answer of a poll to the samples that waited for it.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// The poll left the request waiting. `stacks` are those in which it registered its waker:
    /// more than one if it waits for several things at once. `uncaptured` counts further
    /// registrations without a stack.
    Waiting {
        stacks: Vec<RawStack>,
        uncaptured: u32,
    },
    /// The poll left the request waiting without registering a waker.
    Unregistered,
    /// Something else woke the request between the sample and the poll, so the wait that the
    /// sample fell on is over.
    WokenFirst,
    /// The request ended, or was dropped, before its stack was captured.
    Finished,
}

/// Owner of the polled future, and who polled it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Whose {
    /// A request.
    Request,
    /// A child, polled by its request: the request waits for it, or for a part of it.
    Member,
    /// A child, polled by something else: the request may wait for it or not.
    Spawned,
}

/// One poll that answered one sample, or several samples of the same request.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) samples: Vec<(u32, Duration)>,
    pub(crate) whose: Whose,
    pub(crate) answer: Answer,
    /// Time that each capture took.
    pub(crate) costs: Vec<Duration>,
}

/// Watch over a request whose stack was captured, until something wakes it. It goes on for some
/// polls after that if the request may have futures that these polls do not reach.
pub(crate) struct Watch {
    session: Arc<Session>,
    /// Samples that fell on the current wait.
    samples: Vec<u32>,
    /// Stack that woke the request. Its room is reserved from the start, since a wake may happen under
    /// any lock.
    pub(crate) woken_from: Vec<usize>,
    /// Moment of that wake, and the number of the task that made it, if it is known.
    pub(crate) woken_by: Option<(Instant, Option<u64>)>,
    /// Sample that stands for the request in its follow-ups: the first mark of the first captured poll.
    first: u32,
    /// Waits of earlier polls, with the time of the poll.
    kept: Vec<(Weak<Kept>, RawStack, Instant)>,
    /// Waits of the last captured poll.
    last: Vec<RawStack>,
    /// Number of further polls that are captured without a sample.
    polls_left: u8,
    /// Number of polls after a wake so far. The first few are captured whatever they show, to see whether the
    /// request waits at the same line again.
    looked_ahead: u8,
}

/// Waits that a later poll of a sampled request found and left.
#[derive(Debug)]
pub(crate) struct FollowUp<S> {
    /// Sample that stands for the request: see `Watch`.
    pub(crate) sample: u32,
    pub(crate) at: Instant,
    /// Stack that woke the request for this poll. None if it is not known, or if the sampler did it.
    pub(crate) woken_from: Option<S>,
    /// Waits that go on although this poll did not reach their futures, with the time since these were polled.
    pub(crate) left: Vec<(S, Duration)>,
    /// Waits that this poll registered.
    pub(crate) waits: Vec<S>,
    /// Waits among `waits` that still go on after the poll. The others belong to futures that cloned the waker and
    /// then ended in the same poll.
    pub(crate) open: Vec<S>,
}

/// End of a wait.
pub(crate) struct Wake {
    /// Samples that fell on the wait.
    pub(crate) samples: Vec<u32>,
    /// True if `samples` begins with the sample that stands for the request in its follow-ups.
    pub(crate) is_first: bool,
    /// Stack that woke the request.
    pub(crate) stack: RawStack,
    /// Moment of that wake, and the number of the task that made it, if it is known.
    pub(crate) by: Option<(Instant, Option<u64>)>,
}

/// Most frames of the stack of a wake; deeper stacks are cut at their outer end.
const MAX_WAKE_FRAMES: usize = 128;
/// Most polls after a sample that are captured. Most of those polls are not.
const MAX_FOLLOWED: u8 = 8;
/// Number of polls after a sample that are captured whatever they show, as many as a round of a loop may have waits.
pub(crate) const LOOKED_AHEAD: u8 = 4;

impl Watch {
    /// Returns a watch for the samples of these marks. It continues `earlier` if that belongs to the
    /// same session. None if there are no marks. A request has one watch: that of a profile goes before that of counts.
    pub(crate) fn of(marks: &[Mark], earlier: Option<Box<Watch>>) -> Option<Box<Self>> {
        let mut of_profiles = marks.iter().rev();
        let of_profile = of_profiles.find(|mark| mark.session.purpose == Purpose::Profile);
        let last = of_profile.or(marks.last())?;
        let session = &last.session;
        let mut samples = Vec::new();
        for mark in marks {
            if Arc::ptr_eq(&mark.session, session) {
                samples.push(mark.sample);
            }
        }
        match earlier {
            Some(earlier) if of_profile.is_none() && earlier.follows_polls() => Some(earlier),
            Some(mut earlier) if Arc::ptr_eq(&earlier.session, session) => {
                earlier.samples.extend(samples);
                Some(earlier)
            }
            _ => Some(Box::new(Watch {
                session: session.clone(),
                woken_from: Vec::with_capacity(MAX_WAKE_FRAMES),
                woken_by: None,
                first: samples[0],
                samples,
                kept: Vec::new(),
                last: Vec::new(),
                polls_left: MAX_FOLLOWED,
                looked_ahead: 0,
            })),
        }
    }

    /// Returns whether it goes on after the wait. Counts need no more than the end of the wait.
    pub(crate) fn follows_polls(&self) -> bool {
        self.session.purpose == Purpose::Profile
    }

    /// Sends the stack that woke the request to the sampler, if it is known.
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
            by: self.woken_by,
        });
    }

    /// Tells the sampler which waits a poll that left the request waiting did not reach, and keeps what it captured.
    /// Returns whether to capture the next poll too. There are three reasons for it: the request waits for several
    /// things, it was woken for something else than its wait, or it has been followed for only a few polls.
    pub(crate) fn follow(&mut self, captured: &Captured) -> bool {
        if !self.follows_polls() {
            return false;
        }
        let now = Instant::now();
        let was_woken = !self.woken_from.is_empty();
        // A future that this poll reached has replaced its clone, or dropped it.
        self.kept.retain(|(kept, ..)| kept.strong_count() > 0);
        let mut left = Vec::new();
        for (_, stack, since) in &self.kept {
            left.push((stack.clone(), now - *since));
        }
        let waits = &captured.stacks;
        let is_of_interest = waits.len() > 1
            || !left.is_empty()
            || self.last.iter().any(|last| waits.contains(last));
        let mut open = Vec::new();
        for (clone, stack) in std::iter::zip(&captured.clones, waits) {
            if clone.strong_count() > 0 {
                open.push(stack.clone());
            }
            self.kept.push((clone.clone(), stack.clone(), now));
        }
        if !self.last.is_empty() {
            lock(&self.session.follow_ups).push(FollowUp {
                sample: self.first,
                at: now,
                woken_from: if was_woken {
                    Some(RawStack::from(&*self.woken_from))
                } else {
                    None
                },
                left,
                waits: waits.clone(),
                open,
            });
        }
        self.last.clone_from(waits);
        self.woken_from.clear();
        self.woken_by = None;
        self.polls_left = self.polls_left.saturating_sub(was_woken.into());
        self.looked_ahead += u8::from(was_woken);
        (is_of_interest || self.looked_ahead < LOOKED_AHEAD) && self.polls_left > 0
    }
}

/// Events of one profile, or of counts, that the sampler has not taken yet.
pub(crate) struct Session {
    pub(crate) purpose: Purpose,
    events: Mutex<Vec<Event>>,
    /// Ends of waits that samples fell on.
    releases: Mutex<Vec<Wake>>,
    follow_ups: Mutex<Vec<FollowUp<RawStack>>>,
}

impl Session {
    pub(crate) fn new(purpose: Purpose) -> Self {
        Session {
            purpose,
            events: Mutex::default(),
            releases: Mutex::default(),
            follow_ups: Mutex::default(),
        }
    }

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

/// Sends the answer to `marks` to their sessions. `began` is the start of the poll that answers.
pub(crate) fn answer(
    marks: &[Mark],
    began: Instant,
    whose: Whose,
    answer: &Answer,
    costs: &[Duration],
) {
    // A request may be marked for a profile and for counts. An earlier profile may have left a mark, too.
    let mut rest: Vec<&Mark> = marks.iter().collect();
    while let Some(&first) = rest.first() {
        let session = &first.session;
        let mut samples = Vec::new();
        rest.retain(|mark| {
            let is_same = Arc::ptr_eq(&mark.session, session);
            if is_same {
                samples.push((mark.sample, began.saturating_duration_since(mark.at)));
            }
            !is_same
        });
        lock(&session.events).push(Event {
            samples,
            whose,
            answer: answer.clone(),
            costs: costs.to_vec(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(session: &Arc<Session>, sample: u32) -> Mark {
        Mark {
            session: session.clone(),
            sample,
            at: Instant::now(),
        }
    }

    #[test]
    fn the_first_of_several_marks_stands_for_the_request() {
        let session = || Arc::new(Session::new(Purpose::Profile));
        let (earlier, session) = (session(), session());
        let marks = [mark(&earlier, 9), mark(&session, 3), mark(&session, 4)];
        let watch = Watch::of(&marks, None);
        let mut watch = watch.expect("it has marks");
        // The same wait is marked again before something ends it.
        watch = Watch::of(&[mark(&session, 7)], Some(watch)).expect("it goes on");
        watch.woken_from.push(1);
        watch.send();
        let wakes = session.take_releases();
        assert_eq!(wakes[0].samples, [3, 4, 7]);
        assert!(wakes[0].is_first);
        assert_eq!(
            watch.first, 3,
            "its follow-ups are those of the same sample"
        );
        // What it waits for afterwards is another wait.
        watch = Watch::of(&[mark(&session, 8)], Some(watch)).expect("it goes on");
        watch.send();
        assert!(!session.take_releases()[0].is_first);
    }

    #[test]
    fn counts_leave_the_watch_of_a_profile_alone() {
        let profile = Arc::new(Session::new(Purpose::Profile));
        let counts = Arc::new(Session::new(Purpose::Counts));
        let of_counts = Watch::of(&[mark(&counts, 1)], None);
        let watch = Watch::of(&[mark(&profile, 2), mark(&counts, 3)], of_counts);
        let watch = Watch::of(&[mark(&counts, 4)], watch).expect("it goes on");
        assert!(Arc::ptr_eq(&watch.session, &profile));
        assert_eq!(watch.samples, [2]);
    }
}
