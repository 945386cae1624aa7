//! Waits for the same thing that follow each other at one line: a query for each row, a call for each item.
//!
//! A sample falls on a wait, and the wait ends. The next polls then show what the request waits for, for as many
//! polls as a round of a loop may have. Of `n` waits at a line, all but the last are followed by another one there.
//! So if a share `p` is followed by another one, there are `1 / (1 - p)` of them: the mean of the geometric
//! distribution.

use std::collections::{HashMap, HashSet};

use crate::collected::{Outcome, StackId};
use crate::frame::{Frame, labels};
use crate::frame_kind::FrameKind;
use crate::profile::Profile;
use crate::session::LOOKED_AHEAD;
use crate::stack::Frames;

/// Fewest ends of waits at a place for which a number is given.
const FEWEST: f64 = 20.0;

/// Numbers of waits that follow each other, by place.
pub(crate) struct InARow(HashMap<Vec<String>, f64>);

impl InARow {
    pub(crate) fn of(profile: &Profile) -> Self {
        let collected = &profile.collected;
        // A place includes the primitive that is waited for. A call that looks up a name, connects and awaits the
        // answer has three waits at its line, and is one call.
        let place = |route: &str, stack: StackId| {
            let frames = profile.stacks[stack as usize].frames(Frames::Own);
            [vec![route.to_owned()], labels(frames)].concat()
        };
        let mut next: HashMap<u32, (u8, HashSet<StackId>)> = HashMap::new();
        for follow_up in &collected.follow_ups {
            let (polls, waits) = next.entry(follow_up.sample).or_default();
            if follow_up.woken_from.is_some() && *polls < LOOKED_AHEAD {
                *polls += 1;
                waits.extend(&follow_up.open);
            }
        }
        let mut ends: HashMap<Vec<String>, [f64; 2]> = HashMap::new();
        for (index, sample) in (0..).zip(&collected.samples) {
            let Outcome::Waiting(waits) = &sample.outcome else {
                continue;
            };
            let ([stack], true) = (&waits.stacks[..], sample.is_followed) else {
                continue;
            };
            let here = place(&sample.route, *stack);
            let next = next.get(&index);
            let is_again = next.is_some_and(|(_, next)| {
                next.iter().any(|&next| place(&sample.route, next) == here)
            });
            let [all, again] = ends.entry(here).or_default();
            *all += 1.0;
            *again += f64::from(u8::from(is_again));
        }
        let known = ends.into_iter().filter(|(_, [all, _])| *all >= FEWEST);
        // Counts one more wait, as the last of its row, so that the quotient is finite.
        let times = |[all, again]: [f64; 2]| (all + 1.0) / (all + 1.0 - again);
        Self(known.map(|(place, ends)| (place, times(ends))).collect())
    }

    /// Returns the number of waits that follow each other in these frames, of which the first is the route.
    pub(crate) fn at(&self, stack: &[Frame]) -> Option<f64> {
        self.0.get(&labels(stack)).copied()
    }
}

/// Returns the frames from the outermost one to the reader's innermost one.
pub(crate) fn own_line(frames: &[Frame]) -> Vec<String> {
    let last = frames
        .iter()
        .rposition(|frame| frame.kind == FrameKind::Own);
    labels(&frames[..last.map_or(0, |last| last + 1)])
}
