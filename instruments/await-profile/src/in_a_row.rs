//! Waits of one request that follow each other: at one line, as in a loop that asks for one row after the other, or at
//! several lines.
//!
//! A sample falls on a wait, and the wait ends. The next polls then show what the request waits for, for as many
//! polls as a round of a loop may have. Of `n` waits at a line, all but the last are followed by another one there.
//! So if a share `p` is followed by another one, there are `1 / (1 - p)` of them: the mean of the geometric
//! distribution.

use std::collections::{BTreeMap, HashMap};

use ecosystem::{Frame as Seen, Sequence};

use crate::collected::{Outcome, StackId};
use crate::frame::{Frame, seen, split};
use crate::frame_kind::FrameKind;
use crate::profile::Profile;
use crate::session::LOOKED_AHEAD;
use crate::stack::Frames;

/// Fewest ends of waits at a place for which a number is given.
const FEWEST: f64 = 20.0;

/// The route, and the frames from the handler to the primitive that is waited for. A call that looks up a name, connects
/// and awaits the answer has three waits at its line, and is one call.
type Place = (String, Vec<Seen>);

/// Next waits of the requests whose waits at a place ended.
#[derive(Default)]
struct Ends {
    all: f64,
    /// The request waited there again.
    again: f64,
    /// It waited there again, and for something else before that.
    anew: f64,
    /// The first other place at which it waited.
    next: BTreeMap<Place, u64>,
}

/// Waits that follow each other, by place.
pub(crate) struct InARow(HashMap<Place, Ends>);

impl InARow {
    pub(crate) fn of(profile: &Profile) -> Self {
        let collected = &profile.collected;
        // By sample: the places at which the next polls left the request.
        let mut polls: HashMap<u32, Vec<&[StackId]>> = HashMap::new();
        for follow_up in &collected.follow_ups {
            let next = polls.entry(follow_up.sample).or_default();
            if follow_up.woken_from.is_some() && next.len() < usize::from(LOOKED_AHEAD) {
                next.push(&follow_up.open);
            }
        }
        let mut ends: HashMap<Place, Ends> = HashMap::new();
        for (index, sample) in (0..).zip(&collected.samples) {
            let Outcome::Waiting(waits) = &sample.outcome else {
                continue;
            };
            if !sample.is_followed || waits.uncaptured > 0 {
                continue;
            }
            let route = &sample.route;
            let [here] = &profile.places_of(route, &waits.stacks)[..] else {
                continue;
            };
            let seen = ends.entry(here.clone()).or_default();
            seen.all += 1.0;
            let mut other: Option<Place> = None;
            for stacks in polls.get(&index).into_iter().flatten() {
                let places = profile.places_of(route, stacks);
                if places.contains(here) {
                    seen.again += 1.0;
                    seen.anew += f64::from(u8::from(other.is_some()));
                    break;
                }
                if let ([place], None) = (&places[..], &other) {
                    other = Some(place.clone());
                }
            }
            if let Some(place) = other {
                *seen.next.entry(place).or_default() += 1;
            }
        }
        ends.retain(|_, ends| ends.all >= FEWEST);
        Self(ends)
    }

    /// Returns the number of waits that follow each other in these frames, of which the first is the route. Also returns
    /// whether most of them have another wait in between.
    pub(crate) fn at(&self, stack: &[Frame]) -> (Option<f64>, bool) {
        let Some(ends) = self.0.get(&split(stack)) else {
            return (None, false);
        };
        // Counts one more wait, as the last of its row, so that the quotient is finite.
        let times = (ends.all + 1.0) / (ends.all + 1.0 - ends.again);
        (Some(times), ends.anew * 2.0 > ends.again)
    }

    /// Returns the waits that follow each other at different places, those of the same first wait together.
    pub(crate) fn sequences(&self) -> Vec<Sequence> {
        let mut sequences = Vec::new();
        for ((route, frames), ends) in &self.0 {
            for ((_, next), samples) in &ends.next {
                sequences.push(Sequence {
                    route: route.clone(),
                    frames: frames.clone(),
                    next: next.clone(),
                    share: *samples as f64 / ends.all,
                    samples: *samples,
                });
            }
        }
        // The map has no order of its own.
        sequences
            .sort_by(|a, b| (&a.route, &a.frames, &a.next).cmp(&(&b.route, &b.frames, &b.next)));
        sequences
    }
}

impl Profile {
    /// Returns the places of these stacks, without the timers that only bound how long they take.
    fn places_of(&self, route: &str, stacks: &[StackId]) -> Vec<Place> {
        let mut places = Vec::new();
        for id in stacks {
            let stack = &self.stacks[*id as usize];
            if !stack.is_timeout {
                places.push((route.to_owned(), seen(stack.frames(Frames::Own))));
            }
        }
        places
    }
}

/// Returns the frames from the outermost one to the reader's innermost one.
pub(crate) fn own_line(frames: &[Frame]) -> Vec<Seen> {
    let last = frames
        .iter()
        .rposition(|frame| frame.kind == FrameKind::Own);
    seen(&frames[..last.map_or(0, |last| last + 1)])
}
