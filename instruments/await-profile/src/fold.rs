//! Sums of samples by stack.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time::{Duration, Instant};

use ecosystem::{Frame as Seen, PathMeaning, Place, Release};

use crate::collected::{Outcome, Sample, StackId, Waits};
use crate::frame::{Frame, labels, seen, split};
use crate::frame_kind::FrameKind;
use crate::in_a_row::InARow;
use crate::interval::share_interval;
use crate::profile::{Profile, millis};
use crate::stack::{Frames, Stack};
use crate::waits_table::wait_of;

/// Number of consecutive samples that say together whether requests are at a place: one falls on any request.
const STEP: u64 = 16;

/// Frame of a request that something has woken.
pub(crate) const READY: &str = "(ready: woken and not yet polled)";

/// Fewest wakes of which the times between them are told.
const FEWEST_WAKES: usize = 10;

/// Wakes by one place in the code.
#[derive(Default)]
struct Wakes {
    weight: f64,
    samples: u64,
    /// Tasks that made them, `None` if one is not known.
    tasks: BTreeSet<Option<u64>>,
    /// True if one was made by a request, or by a thread that polled no task.
    is_of_others: bool,
    /// True if dropping a value made one.
    is_by_drop: bool,
    at: Vec<Instant>,
}

impl Wakes {
    /// Returns the number of tasks, or 0 if that is not known.
    fn tasks(&self) -> usize {
        if self.tasks.contains(&None) {
            0
        } else {
            self.tasks.len()
        }
    }

    fn short_gap_ms(&mut self) -> Option<f64> {
        self.at.sort_unstable();
        let mut gaps: Vec<Duration> = Vec::new();
        for pair in self.at.windows(2) {
            gaps.push(pair[1] - pair[0]);
        }
        gaps.sort_unstable();
        let short = gaps.get(gaps.len() / 10)?;
        (self.at.len() >= FEWEST_WAKES).then_some(short.as_secs_f64() * 1e3)
    }
}

/// Wakes, by the code that made them.
type WakesBy = BTreeMap<Vec<Seen>, Wakes>;

impl Profile {
    /// Returns the code that released what requests waited for, for the places with most waiting first.
    ///
    /// A request that waits for a lock is woken by its holder, at the line where the holder releases
    /// the lock. Before that, the holder is itself suspended somewhere in the function that releases:
    /// see [`shares`](Self::shares). Waits that outlast the profile have no release. Waits for several
    /// things at once have none either, since it is not known which of them ended.
    pub fn releases(&self, frames: Frames) -> Vec<Release> {
        let mut waits: BTreeMap<(String, Vec<Seen>), WakesBy> = BTreeMap::new();
        for sample in &self.collected.samples {
            let stacks = stacks_of(sample, &self.stacks, frames);
            let ([(stack, _)], Some(release)) = (stacks.as_slice(), sample.release) else {
                continue;
            };
            let place = (sample.route.to_string(), seen(stack));
            let release = &self.releases[release as usize];
            let by = seen(release.frames(frames));
            let wakes = waits.entry(place).or_default().entry(by).or_default();
            wakes.is_of_others |= !release.is_of_task;
            wakes.is_by_drop |= release.is_by_drop;
            wakes.weight += self.weight_of(sample);
            wakes.samples += 1;
            if let Some((at, task)) = sample.releaser {
                wakes.at.push(at);
                wakes.tasks.insert(task);
            }
        }
        let mut places = Vec::new();
        for (place, by) in waits {
            let total: f64 = by.values().map(|wakes| wakes.weight).sum();
            places.push((total, place, by));
        }
        places.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut releases = Vec::new();
        for (total, (route, frames), by) in places {
            let mut by: Vec<_> = by.into_iter().collect();
            by.sort_by(|a, b| b.1.weight.total_cmp(&a.1.weight));
            for (by, mut wakes) in by {
                releases.push(Release {
                    route: route.clone(),
                    frames: frames.clone(),
                    by,
                    share: wakes.weight / total,
                    samples: wakes.samples,
                    is_of_task: !wakes.is_of_others,
                    is_by_drop: Some(wakes.is_by_drop),
                    tasks: wakes.tasks(),
                    wakes: wakes.at.len(),
                    short_gap_ms: wakes.short_gap_ms(),
                });
            }
        }
        releases
    }

    /// Returns the stacks as text, one line each, as flamegraph tools read them. A line has the frames
    /// from the route inwards with `;` between them, a space, and a number: the microseconds that
    /// all requests together spent there.
    ///
    /// A request that waits for several things at once counts to each of them in equal parts,
    /// beneath a frame that says so.
    pub fn folded(&self, frames: Frames) -> String {
        self.weights(frames).folded()
    }

    /// Returns every place where requests waited, with its share, the largest first.
    pub fn shares(&self, frames: Frames) -> Vec<Place> {
        self.shares_in(frames, &InARow::of(self))
    }

    pub(crate) fn shares_in(&self, frames: Frames, in_a_row: &InARow) -> Vec<Place> {
        // Sum of the requests at each place, by run, and the steps in which some were there.
        let mut places: BTreeMap<Vec<Frame>, (Vec<f64>, BTreeSet<u64>)> = BTreeMap::new();
        for (sample, stack, part) in self.stacks(frames) {
            let here = f64::from(sample.in_flight) * part;
            let (sums, steps) = places.entry(stack).or_default();
            self.collected.runs.add(sums, sample.moment, here);
            steps.insert(sample.moment / STEP);
        }
        let steps = self.collected.moments().div_ceil(STEP).max(1);
        let all = self.in_flight_by_run();
        let total: f64 = all.iter().sum();
        let in_flight = self.mean_in_flight();
        let mut shares = Vec::new();
        for (stack, (sums, seen)) in &places {
            let share = sums.iter().sum::<f64>() / total;
            let mean_in_flight = share * in_flight;
            let (route, frames) = split(stack);
            let spent = self.latency(mean_in_flight, self.ended_of(&route));
            let ms_interval = self.latency_interval(sums, Some(&route));
            let (times, is_asked_anew) = in_a_row.at(stack);
            shares.push(Place {
                route,
                frames,
                wait: wait_of(stack),
                share,
                share_interval: share_interval(sums, &all),
                in_flight: mean_in_flight,
                ms_per_request: spent.map(millis),
                ms_per_request_interval: ms_interval,
                in_a_row: times,
                is_asked_anew,
                absent: 1.0 - seen.len() as f64 / steps as f64,
            });
        }
        shares.sort_by(|a, b| b.share.total_cmp(&a.share));
        shares
    }

    pub(crate) fn weights(&self, frames: Frames) -> Weights {
        let mut weights = Weights::default();
        for (sample, stack, part) in self.stacks(frames) {
            weights.add(stack, self.weight_of(sample) * part);
        }
        weights
    }

    /// Returns the stacks of each sample, from the route inwards, and the part of the sample that each has.
    pub(crate) fn stacks(
        &self,
        frames: Frames,
    ) -> impl Iterator<Item = (&Sample, Vec<Frame>, f64)> {
        self.collected.samples.iter().flat_map(move |sample| {
            let stacks = stacks_of(sample, &self.stacks, frames).into_iter();
            stacks.map(move |(stack, part)| {
                let route = Frame::text(&sample.route, FrameKind::Route);
                let stack = std::iter::once(route).chain(stack).collect();
                (sample, stack, part)
            })
        })
    }
}

/// Request-microseconds by stack.
#[derive(Default)]
pub(crate) struct Weights(BTreeMap<Vec<Frame>, f64>);

impl Weights {
    pub(crate) fn add(&mut self, stack: Vec<Frame>, weight: f64) {
        *self.0.entry(stack).or_default() += weight;
    }

    /// Returns the stacks as text, one line each with its weight in whole microseconds.
    pub(crate) fn folded(&self) -> String {
        let mut folded = String::new();
        for (stack, micros) in self.rounded() {
            // Writing to a string cannot fail.
            let _ = writeln!(folded, "{} {micros}", labels(stack).join(";"));
        }
        folded
    }

    /// Scales the weights of each route to the sum that it has in `other`.
    #[cfg(feature = "flamegraph")]
    pub(crate) fn scale_routes(&mut self, other: &Weights) {
        let (own, wanted) = (self.by_route(), other.by_route());
        for (stack, weight) in &mut self.0 {
            let route = stack.first().cloned();
            let wanted = wanted.get(&route).copied().unwrap_or(0.0);
            *weight *= wanted / own[&route];
        }
    }

    #[cfg(feature = "flamegraph")]
    fn by_route(&self) -> BTreeMap<Option<Frame>, f64> {
        let mut sums = BTreeMap::new();
        for (stack, weight) in &self.0 {
            *sums.entry(stack.first().cloned()).or_default() += weight;
        }
        sums
    }

    /// Returns the weights in whole microseconds, without stacks that have less than half of one.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a weight is positive and saturates"
    )]
    pub(crate) fn rounded(&self) -> impl Iterator<Item = (&[Frame], u64)> {
        let weights = self.0.iter();
        weights
            .map(|(stack, weight)| (stack.as_slice(), weight.round() as u64))
            .filter(|&(_, weight)| weight > 0)
    }
}

fn remark(text: &str) -> Frame {
    Frame::text(text, FrameKind::Remark)
}

/// Returns the stacks that a sample counts to, and the part of the sample that each has.
fn stacks_of(sample: &Sample, stacks: &[Stack], frames: Frames) -> Vec<(Vec<Frame>, f64)> {
    let state = match &sample.outcome {
        Outcome::Waiting(waits) => {
            let child = &sample.child;
            let own = without_timeouts(waits, stacks, frames);
            let join = join(&own, sample.child_is_member);
            let Some(join) = join.filter(|_| !child.stacks.is_empty()) else {
                return side_by_side(own, waits.uncaptured);
            };
            // It is not known which task's handle the request waits for.
            let which = match (sample.child_is_member, sample.has_several_children) {
                (true, false) => "(child)",
                (true, true) => "(one of its children)",
                (false, false) => "(spawned by this request)",
                (false, true) => "(one of those spawned by this request)",
            };
            let mut beneath = Vec::new();
            for own in without_timeouts(child, stacks, frames) {
                beneath.push([join, &[remark(which)], &own].concat());
            }
            return side_by_side(beneath, child.uncaptured);
        }
        Outcome::Ready => READY,
        Outcome::Running => "(running)",
        Outcome::WokenFirst => "(woken before it could be seen)",
        Outcome::Finished => "(finished before it could be seen)",
        Outcome::Unregistered => "(pending without a waker)",
        Outcome::Unanswered => "(not polled before the profile ended)",
        Outcome::Backpressured => "(response body: the client has not taken the last piece)",
    };
    vec![(vec![remark(state)], 1.0)]
}

/// Returns the stacks of one sample. The timer of a deadline is left out, unless the request waits
/// for nothing else.
fn without_timeouts(waits: &Waits, stacks: &[Stack], frames: Frames) -> Vec<Vec<Frame>> {
    let is_timeout = |id: &StackId| stacks[*id as usize].is_timeout;
    let only_timeouts = waits.stacks.iter().all(is_timeout);
    let mut chosen = Vec::new();
    for id in &waits.stacks {
        if only_timeouts || !is_timeout(id) {
            chosen.push(stacks[*id as usize].frames(frames).to_vec());
        }
    }
    chosen
}

/// Returns the stack in which a request waits for something that it has made: perhaps the child. A member
/// is polled by its set. A spawned task is awaited by its handle, which may also be in a set.
fn join(stacks: &[Vec<Frame>], of_member: bool) -> Option<&[Frame]> {
    let wanted: &[PathMeaning] = if of_member {
        &[PathMeaning::Set]
    } else {
        &[PathMeaning::Handle, PathMeaning::Set]
    };
    for meaning in wanted {
        for stack in stacks {
            if let Some(leaf) = stack.last()
                && meaning.fits(&leaf.path)
            {
                return Some(stack);
            }
        }
    }
    None
}

/// Inserts a frame where the stacks of one sample branch, and gives each stack an equal part.
///
/// Stacks that end in the same well-known wait count as one: a request that waits for a connection of a
/// pool also waits for the pool to be closed.
fn side_by_side(mut stacks: Vec<Vec<Frame>>, uncaptured: u32) -> Vec<(Vec<Frame>, f64)> {
    stacks.dedup_by(|a, b| {
        a == b && matches!(a.last(), Some(leaf) if leaf.kind == FrameKind::Remark)
    });
    let all = stacks.len() + uncaptured as usize;
    let part = 1.0 / all as f64;
    if stacks.is_empty() && uncaptured > 0 {
        return vec![(vec![remark("(not captured)")], 1.0)];
    }
    let Some((first, others)) = stacks.split_first().filter(|_| all > 1) else {
        return stacks.into_iter().map(|stack| (stack, part)).collect();
    };
    let mut common = first.len().saturating_sub(1);
    for other in others {
        let pairs = std::iter::zip(first, other);
        let shared = pairs.take_while(|(a, b)| a.label() == b.label()).count();
        // Equal stacks branch before their last frame.
        common = common.min(shared).min(other.len().saturating_sub(1));
    }
    let parting = remark(&Seen::Several(all).to_string());
    for stack in &mut stacks {
        stack.insert(common, parting.clone());
    }
    let unseen = [&stacks[0][..=common], &[remark("(not captured)")]].concat();
    let mut parts = Vec::new();
    for stack in stacks {
        parts.push((stack, part));
    }
    if uncaptured > 0 {
        parts.push((unseen, part * f64::from(uncaptured)));
    }
    parts
}
