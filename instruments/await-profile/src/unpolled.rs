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

use ecosystem::{Frame as Seen, PathMeaning, Unpolled, WaitKind};

use crate::collected::StackId;
use crate::frame::{Frame, seen as seen_frames};
use crate::frame_kind::FrameKind;
use crate::in_a_row::own_line;
use crate::profile::{Profile, millis};
use crate::session::FollowUp;
use crate::stack::Frames;
use crate::waits_table::wait_of;

#[derive(Default)]
struct Sightings {
    requests: HashSet<u32>,
    woken_by: BTreeMap<Vec<Seen>, u64>,
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
        let follow_ups = &self.collected.follow_ups;
        let mut all: BTreeMap<(String, [Vec<Seen>; 2]), Sightings> = BTreeMap::new();
        let mut looked_at: BTreeMap<&str, HashSet<u32>> = BTreeMap::new();
        for (at, follow_up) in follow_ups.iter().enumerate() {
            let Some(sample) = self.collected.samples.get(follow_up.sample as usize) else {
                continue;
            };
            let route = &*sample.route;
            looked_at.entry(route).or_default().insert(follow_up.sample);
            let Some(&instead) = follow_up.waits.first() else {
                continue;
            };
            for &(stack, time) in &follow_up.left {
                if self.is_left(stack, follow_up) {
                    let places = [self.placed(stack), self.placed(instead)];
                    let seen = all.entry((route.to_owned(), places)).or_default();
                    seen.requests.insert(follow_up.sample);
                    seen.longest = seen.longest.max(Some(time));
                }
            }
            let Some(by) = follow_up.woken_from else {
                continue;
            };
            let by = &self.releases[by as usize];
            if is_of_member(by.frames(Frames::All)) && !self.has_set(follow_up) {
                let set = match self.set_of(follow_up.sample, route) {
                    Some(set) => self.placed(set),
                    None => vec![Seen::State("(a set of futures)".to_owned())],
                };
                let places = [set, self.placed(instead)];
                let seen = all.entry((route.to_owned(), places)).or_default();
                seen.requests.insert(follow_up.sample);
                let mut later = follow_ups[at + 1..].iter();
                if let Some(later) =
                    later.find(|later| later.sample == follow_up.sample && self.has_set(later))
                {
                    seen.longest = seen.longest.max(Some(later.at - follow_up.at));
                }
                let by = seen_frames(by.frames(Frames::Own));
                *seen.woken_by.entry(by).or_default() += 1;
            }
        }
        let mut unpolled = Vec::new();
        for ((route, [frames, instead]), seen) in all {
            let woken_by = seen.woken_by.into_iter().max_by_key(|&(_, times)| times);
            unpolled.push(Unpolled {
                of_requests: looked_at[&*route].len() as u64,
                route,
                frames,
                instead,
                woken_by: match woken_by {
                    Some((by, _)) => by,
                    None => Vec::new(),
                },
                requests: seen.requests.len() as u64,
                longest_ms: seen.longest.map(millis),
            });
        }
        unpolled.sort_by_key(|unpolled| std::cmp::Reverse(unpolled.requests));
        unpolled
    }

    /// Returns the frames of a wait, from the handler inwards.
    fn placed(&self, stack: StackId) -> Vec<Seen> {
        seen_frames(self.stacks[stack as usize].frames(Frames::Own))
    }

    fn kind_of(&self, stack: StackId) -> Option<WaitKind> {
        let wait = wait_of(self.stacks[stack as usize].frames(Frames::Own))?;
        Some(wait.kind)
    }

    /// Returns whether a poll registered a set of futures.
    fn has_set(&self, follow_up: &FollowUp<StackId>) -> bool {
        let mut waits = follow_up.waits.iter();
        waits.any(|&stack| self.kind_of(stack) == Some(WaitKind::Set))
    }

    /// Returns the set of futures that a request was seen waiting at; otherwise one of the same route.
    fn set_of(&self, sample: u32, route: &str) -> Option<StackId> {
        let mut of_route = None;
        for follow_up in &self.collected.follow_ups {
            let Some(other) = self.collected.samples.get(follow_up.sample as usize) else {
                continue;
            };
            if &*other.route != route {
                continue;
            }
            let mut waits = follow_up.waits.iter().copied();
            if let Some(set) = waits.find(|&stack| self.kind_of(stack) == Some(WaitKind::Set)) {
                if follow_up.sample == sample {
                    return Some(set);
                }
                of_route = of_route.or(Some(set));
            }
        }
        of_route
    }

    /// Returns whether a wait of an earlier poll shows that this poll left its future unpolled.
    fn is_left(&self, stack: StackId, follow_up: &FollowUp<StackId>) -> bool {
        let mut waits = follow_up.waits.iter();
        !waits.any(|&wait| self.is_same_code(stack, wait))
            && self.is_kept_while_it_exists(stack, follow_up.waits[0])
    }

    /// Returns whether both wait inside the same line of the reader's, so that one may have replaced the other.
    fn is_same_code(&self, stack: StackId, other: StackId) -> bool {
        if stack == other {
            return true;
        }
        let [one, other] = [stack, other].map(|id| self.stacks[id as usize].frames(Frames::Own));
        own_line(one) == own_line(other)
    }

    /// Returns whether a waker that is kept for this wait shows that its future exists. Locks and timers drop
    /// the waker with the future; sockets and channels may keep it longer. A timer counts only if a
    /// function of the reader's encloses it, but not the wait awaited instead: that function may hold something.
    fn is_kept_while_it_exists(&self, stack: StackId, instead: StackId) -> bool {
        match self.kind_of(stack) {
            Some(WaitKind::Lock | WaitKind::Limit | WaitKind::Pool) => true,
            Some(WaitKind::Timer) => {
                let (own, around) = (self.own_functions(stack), self.own_functions(instead));
                !around.starts_with(&own)
            }
            _ => false,
        }
    }

    /// Returns the functions of the reader that enclose a wait, outermost first.
    fn own_functions(&self, stack: StackId) -> Vec<&str> {
        let mut functions = Vec::new();
        for frame in self.stacks[stack as usize].frames(Frames::Own) {
            if frame.kind == FrameKind::Own {
                functions.push(&*frame.path);
            }
        }
        functions
    }
}

/// Returns whether a member of a set was woken. Its waker wakes the task that polled the set last.
fn is_of_member(woken_from: &[Frame]) -> bool {
    let mut frames = woken_from.iter();
    frames.any(|frame| PathMeaning::SetWaker.fits(&frame.path))
}
