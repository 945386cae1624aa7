//! Futures that a request holds and does not poll while it awaits something else.
//!
//! Such a future keeps what it holds, and may be given more: a permit, a lock, a connection. Others
//! wait for that, and no request seems to hold it
//! ([futurelock](https://rfd.shared.oxide.computer/rfd/0609)).
//!
//! A poll that follows a sample shows it in two ways. Either a clone of the waker from an earlier poll
//! still exists: a future that had been polled since would have replaced it. Or a member of a set of
//! futures woke the request, and its poll registers no set: the set was not polled.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use ecosystem::{PathMeaning, WaitKind};

use crate::collected::StackId;
use crate::frame::{Frame, labels};
use crate::frame_kind::FrameKind;
use crate::in_a_row::own_line;
use crate::profile::{Profile, millis};
use crate::stack::Frames;
use crate::waits_table::wait_of;

/// Futures that requests hold and did not poll while they awaited something else.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Unpolled {
    /// Frames of the place where those futures wait, or where their set is polled, from the route inwards.
    pub frames: Vec<String>,
    /// Frames of the wait that the request awaited instead, from the route inwards.
    pub instead: Vec<String>,
    /// Code that woke one of them in vain, outermost frame first. Empty if no such wake was seen.
    pub woken_by: Vec<String>,
    /// Number of sampled requests in which this was seen.
    pub requests: u64,
    /// Number of sampled requests of this route that were polled once more with capture after their sample.
    pub of_requests: u64,
    /// Longest time for which such a future was not polled. None if no end was seen.
    pub longest_ms: Option<f64>,
}

#[derive(Default)]
struct Seen {
    requests: HashSet<u32>,
    woken_by: BTreeMap<Vec<String>, u64>,
    longest: Option<Duration>,
}

impl Profile {
    /// Returns the futures that requests hold and did not poll while they awaited something else, those of
    /// most requests first.
    ///
    /// The result has members of a `FuturesUnordered` that were woken, and so also of `buffered`, `join_all`
    /// and the like. It also has futures that a `select!` by reference leaves behind. These wait for a
    /// lock, a permit, a connection of a pool or a timer.
    pub fn unpolled(&self) -> Vec<Unpolled> {
        let collected = &self.collected;
        let route_of = |sample: u32| &*collected.samples[sample as usize].route;
        let kind_of = |stack: StackId| {
            let wait = wait_of(self.stacks[stack as usize].frames(Frames::Own));
            wait.map(|wait| wait.kind)
        };
        let is_set = |&stack: &StackId| kind_of(stack) == Some(WaitKind::Set);
        let mut seen: BTreeMap<[Vec<String>; 2], Seen> = BTreeMap::new();
        let mut looked_at: BTreeMap<&str, HashSet<u32>> = BTreeMap::new();
        let known = collected.follow_ups.iter().enumerate();
        let known =
            known.filter(|(_, follow_up)| (follow_up.sample as usize) < collected.samples.len());
        for (at, follow_up) in known {
            let route = route_of(follow_up.sample);
            looked_at.entry(route).or_default().insert(follow_up.sample);
            let Some(&instead) = follow_up.waits.first() else {
                continue;
            };
            let placed = |stack: StackId| {
                let frames = self.stacks[stack as usize].frames(Frames::Own);
                [vec![route.to_owned()], labels(frames)].concat()
            };
            let mut note = |frames, time: Option<Duration>, by: Option<StackId>| {
                let seen = seen.entry([frames, placed(instead)]).or_default();
                seen.requests.insert(follow_up.sample);
                seen.longest = seen.longest.max(time);
                if let Some(by) = by {
                    let by = labels(self.releases[by as usize].frames(Frames::Own));
                    *seen.woken_by.entry(by).or_default() += 1;
                }
            };
            for &(stack, time) in &follow_up.left {
                if !follow_up
                    .waits
                    .iter()
                    .any(|&wait| self.is_same_code(stack, wait))
                    && self.is_kept_while_it_exists(stack, instead)
                {
                    note(placed(stack), Some(time), None);
                }
            }
            let by_member = follow_up
                .woken_from
                .filter(|&by| is_of_member(self.releases[by as usize].frames(Frames::All)));
            if by_member.is_some() && !follow_up.waits.iter().any(is_set) {
                let mut later = collected.follow_ups[at + 1..].iter();
                let later = later.find(|later| {
                    later.sample == follow_up.sample && later.waits.iter().any(is_set)
                });
                // The set itself, if this request was seen waiting at it; otherwise a set of the same route.
                let of_request = |other: u32| other == follow_up.sample;
                let of_route = |other: u32| route_of(other) == route;
                let sets = |is_theirs: &dyn Fn(u32) -> bool| {
                    let others = collected
                        .follow_ups
                        .iter()
                        .filter(|other| is_theirs(other.sample));
                    others.flat_map(|other| &other.waits).copied().find(is_set)
                };
                let set = sets(&of_request).or_else(|| sets(&of_route));
                let unknown = || vec![route.to_owned(), "(a set of futures)".to_owned()];
                note(
                    set.map_or_else(unknown, placed),
                    later.map(|later| later.at - follow_up.at),
                    by_member,
                );
            }
        }
        let unpolled = seen.into_iter().map(|([frames, instead], seen)| Unpolled {
            of_requests: looked_at.get(&*frames[0]).map_or(0, |all| all.len() as u64),
            frames,
            instead,
            woken_by: seen
                .woken_by
                .into_iter()
                .max_by_key(|&(_, times)| times)
                .map(|(by, _)| by)
                .unwrap_or_default(),
            requests: seen.requests.len() as u64,
            longest_ms: seen.longest.map(millis),
        });
        let mut unpolled: Vec<_> = unpolled.collect();
        unpolled.sort_by_key(|unpolled| std::cmp::Reverse(unpolled.requests));
        unpolled
    }

    /// Returns whether both wait inside the same line of the reader's, so that one may have replaced the other.
    fn is_same_code(&self, stack: StackId, other: StackId) -> bool {
        let own = |stack: StackId| own_line(self.stacks[stack as usize].frames(Frames::Own));
        stack == other || own(stack) == own(other)
    }

    /// Returns whether a waker that is kept for this wait shows that its future exists. Locks and timers drop
    /// the waker with the future; sockets and channels may keep it longer. A timer counts only if a
    /// function of the reader's encloses it, but not the wait awaited instead: that function may hold something.
    fn is_kept_while_it_exists(&self, stack: StackId, instead: StackId) -> bool {
        let own = |stack: StackId| {
            let frames = self.stacks[stack as usize].frames(Frames::Own).iter();
            frames
                .filter(|frame| frame.kind == FrameKind::Own)
                .map(|frame| &frame.path)
        };
        let common = std::iter::zip(own(stack), own(instead)).take_while(|(a, b)| a == b);
        match wait_of(self.stacks[stack as usize].frames(Frames::Own)).map(|wait| wait.kind) {
            Some(WaitKind::Lock | WaitKind::Limit | WaitKind::Pool) => true,
            Some(WaitKind::Timer) => own(stack).count() > common.count(),
            _ => false,
        }
    }
}

/// Returns whether a member of a set was woken. Its waker wakes the task that polled the set last.
fn is_of_member(woken_from: &[Frame]) -> bool {
    let is_of_set = |frame: &Frame| PathMeaning::SetWaker.fits(&frame.path);
    woken_from.iter().any(is_of_set)
}
