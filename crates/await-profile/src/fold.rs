//! Adding samples up by stack.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::collected::{Outcome, Sample, StackId};
use crate::frame::Frame;
use crate::frame_kind::FrameKind;
use crate::profile::{Profile, millis};
use crate::stack::{Frames, Stack};

/// A place where requests wait.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Share {
    /// From the route inwards to what is waited for.
    pub frames: Vec<String>,
    /// Of all requests in flight, between 0 and 1.
    pub share: f64,
    /// Requests there, averaged over time.
    pub mean_in_flight: f64,
    /// By Little's law, the milliseconds that a request spends there on average,
    /// over all routes. None if no request finished.
    pub ms_per_request: Option<f64>,
}

impl Profile {
    /// The stacks as text, one line each: frames from the route inwards with `;`
    /// between them, a space, and the microseconds that requests spent there, all
    /// requests together. It is what flamegraph tools read.
    ///
    /// A request that waits for several things at once counts to each of them in
    /// equal parts, beneath a frame that says so.
    pub fn folded(&self, frames: Frames) -> String {
        let mut folded = String::new();
        for (stack, micros) in self.weights(frames).rounded() {
            let _ = writeln!(folded, "{} {micros}", labels(stack).join(";"));
        }
        folded
    }

    /// Every place where requests waited, with its share, the largest first.
    pub fn shares(&self, frames: Frames) -> Vec<Share> {
        let weights = self.weights(frames).0;
        let total: f64 = weights.values().sum();
        let (in_flight, latency) = (self.mean_in_flight(), self.mean_latency().map(millis));
        let shares = weights.iter().map(|(stack, weight)| {
            let share = weight / total;
            Share {
                frames: labels(stack),
                share,
                mean_in_flight: share * in_flight,
                ms_per_request: latency.map(|latency| share * latency),
            }
        });
        let mut shares: Vec<Share> = shares.collect();
        shares.sort_by(|a, b| b.share.total_cmp(&a.share));
        shares
    }

    pub(crate) fn weights(&self, frames: Frames) -> Weights {
        let mut weights = Weights::default();
        for sample in &self.collected.samples {
            let stacks = stacks_of(sample, &self.stacks, frames);
            let weight = self.weight_of(sample) / stacks.len() as f64;
            for stack in stacks {
                let route = Frame::text(&sample.route, FrameKind::Route);
                let stack = std::iter::once(route).chain(stack).collect();
                *weights.0.entry(stack).or_default() += weight;
            }
        }
        weights
    }
}

/// Request-microseconds by stack.
#[derive(Default)]
pub(crate) struct Weights(BTreeMap<Vec<Frame>, f64>);

impl Weights {
    /// In whole microseconds, without the stacks that have less than half of one.
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

fn labels(stack: &[Frame]) -> Vec<String> {
    stack.iter().map(Frame::label).collect()
}

fn remark(text: &str) -> Frame {
    Frame::text(text, FrameKind::Remark)
}

/// The stacks that a sample counts to, at least one: equal parts for each.
fn stacks_of(sample: &Sample, stacks: &[Stack], frames: Frames) -> Vec<Vec<Frame>> {
    let state = match &sample.outcome {
        Outcome::Waiting(ids) => {
            let mut waits = without_timeouts(ids, stacks, frames);
            if !sample.child.is_empty() {
                let child = without_timeouts(&sample.child, stacks, frames);
                waits = under_parent(waits, &child);
            }
            return side_by_side(waits);
        }
        Outcome::Ready => "(ready: woken and not yet polled)",
        Outcome::Running => "(running)",
        Outcome::WokenFirst => "(woken before it could be seen)",
        Outcome::Finished => "(finished before it could be seen)",
        Outcome::Unregistered => "(pending without a waker)",
        Outcome::Unanswered => "(not polled before the profile ended)",
        Outcome::Backpressured => "(response body: the client has not taken the last piece)",
    };
    vec![vec![remark(state)]]
}

/// The stacks of one sample. The timer of a timeout is left out, unless nothing else is
/// waited for.
fn without_timeouts(ids: &[StackId], stacks: &[Stack], frames: Frames) -> Vec<Vec<Frame>> {
    let stacks = || ids.iter().map(|&id| &stacks[id as usize]);
    let only_timeouts = stacks().all(|stack| stack.is_timeout);
    stacks()
        .filter(|stack| only_timeouts || !stack.is_timeout)
        .map(|stack| stack.frames(frames).to_vec())
        .collect()
}

/// A child's stacks beneath the stack in which its parent waits for children; the
/// parent's own stacks if it waits for something else.
fn under_parent(parents: Vec<Vec<Frame>>, children: &[Vec<Frame>]) -> Vec<Vec<Frame>> {
    const JOINS: [&str; 3] = [
        "tokio::task::JoinHandle",
        "tokio::task::JoinSet",
        "futures_util::stream::FuturesUnordered",
    ];
    let joins = |stack: &&Vec<Frame>| {
        let leaf = stack.last();
        leaf.is_some_and(|leaf| JOINS.iter().any(|join| leaf.path.starts_with(join)))
    };
    let Some(join) = parents.iter().find(joins) else {
        return parents;
    };
    children
        .iter()
        .map(|child| [join.as_slice(), &[remark("(child)")], child].concat())
        .collect()
}

/// Where the stacks of one sample part, a frame that says so.
fn side_by_side(mut stacks: Vec<Vec<Frame>>) -> Vec<Vec<Frame>> {
    let [first, others @ ..] = stacks.as_slice() else {
        return stacks;
    };
    let shared = |other: &Vec<Frame>| {
        let pairs = std::iter::zip(first, other);
        let shared = pairs.take_while(|(a, b)| a.label() == b.label()).count();
        // Equal stacks part before their last frame.
        shared.min(first.len().min(other.len()).saturating_sub(1))
    };
    let Some(common) = others.iter().map(shared).min() else {
        return stacks;
    };
    let parting = remark(&format!("(one of {} waits at once)", stacks.len()));
    for stack in &mut stacks {
        stack.insert(common, parting.clone());
    }
    stacks
}
