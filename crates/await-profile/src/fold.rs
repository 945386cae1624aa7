//! Adding samples up by stack.

use std::collections::BTreeMap;

use crate::frames::{Frame, Owner};
use crate::profile::{Profile, millis};
use crate::sampler::{Sample, SeenAs, StackId};
use crate::view::is_deadline;

pub(crate) const READY: &str = "(ready: woken and not yet polled)";
pub(crate) const RUNNING: &str = "(running)";
pub(crate) const WOKEN_FIRST: &str = "(woken before it could be seen)";
pub(crate) const FINISHED: &str = "(finished before it could be seen)";
pub(crate) const UNREGISTERED: &str = "(pending without a waker)";
pub(crate) const UNANSWERED: &str = "(not polled before the profile ended)";
pub(crate) const UNASKED: &str = "(response body: the client has not taken the last piece)";
const CHILD: &str = "(child)";

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

/// Request-microseconds by stack.
#[derive(Default)]
pub(crate) struct Folder {
    stacks: BTreeMap<Vec<Entry>, f64>,
}

/// A frame of a folded stack.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    /// What the graph says.
    pub(crate) label: String,
    /// The same without its place.
    pub(crate) function: String,
    pub(crate) kind: Kind,
    pub(crate) file: Option<String>,
    pub(crate) line: Option<u32>,
}

/// What a frame of a folded stack is, and so its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Route,
    Own,
    Library,
    Primitive,
    Framework,
    /// Not a function: something that is said about the request.
    Note,
}

impl Entry {
    fn new(label: &str, kind: Kind) -> Self {
        let label = label.replace([';', '\n'], ",");
        Entry {
            function: label.clone(),
            label,
            kind,
            file: None,
            line: None,
        }
    }
}

impl From<&Frame> for Entry {
    fn from(frame: &Frame) -> Self {
        let kind = match frame.owner {
            Owner::Own => Kind::Own,
            Owner::Library => Kind::Library,
            Owner::Primitive => Kind::Primitive,
            Owner::Framework => Kind::Framework,
        };
        Entry {
            function: frame.path.clone(),
            label: frame.label(),
            kind,
            file: frame.file.clone(),
            line: frame.line,
        }
    }
}

impl Folder {
    /// Adds a sample of this weight. `whole` are its stacks with all frames, and
    /// `shown` the same with those that are to be shown.
    pub(crate) fn add(
        &mut self,
        sample: &Sample,
        weight: f64,
        whole: &[Vec<Frame>],
        shown: &[Vec<Frame>],
    ) {
        let route = Entry::new(&sample.route, Kind::Route);
        let note = match &sample.seen {
            SeenAs::Waiting(ids) => {
                let mut stacks = distinct(ids, whole, shown);
                if !sample.child.is_empty() {
                    stacks = under_parent(stacks, &distinct(&sample.child, whole, shown));
                }
                let share = weight / stacks.len() as f64;
                for stack in side_by_side(stacks) {
                    let path = std::iter::once(route.clone()).chain(stack).collect();
                    *self.stacks.entry(path).or_default() += share;
                }
                return;
            }
            SeenAs::Ready => READY,
            SeenAs::Running => RUNNING,
            SeenAs::WokenFirst => WOKEN_FIRST,
            SeenAs::Finished => FINISHED,
            SeenAs::Unregistered => UNREGISTERED,
            SeenAs::Unanswered => UNANSWERED,
            SeenAs::Unasked => UNASKED,
        };
        *self
            .stacks
            .entry(vec![route, Entry::new(note, Kind::Note)])
            .or_default() += weight;
    }

    pub(crate) fn stacks(&self) -> impl Iterator<Item = (&[Entry], u64)> {
        self.stacks
            .iter()
            .map(|(stack, &weight)| (stack.as_slice(), whole_number(weight)))
            .filter(|&(_, weight)| weight > 0)
    }

    /// Lines of folded stacks.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (String, u64)> {
        self.stacks().map(|(stack, weight)| {
            let labels: Vec<&str> = stack.iter().map(|entry| entry.label.as_str()).collect();
            (labels.join(";"), weight)
        })
    }

    pub(crate) fn shares(&self, profile: &Profile) -> Vec<Share> {
        let total: f64 = self.stacks.values().sum();
        let latency = profile.mean_latency().map(millis);
        let mut shares: Vec<Share> = self
            .stacks
            .iter()
            .map(|(stack, weight)| {
                let share = weight / total;
                Share {
                    frames: stack.iter().map(|entry| entry.label.clone()).collect(),
                    share,
                    mean_in_flight: share * profile.mean_in_flight(),
                    ms_per_request: latency.map(|latency| share * latency),
                }
            })
            .collect();
        shares.sort_by(|a, b| b.share.total_cmp(&a.share));
        shares
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a weight is positive and saturates"
)]
fn whole_number(weight: f64) -> u64 {
    weight.round() as u64
}

/// The stacks of one sample, deadlines left out where there is anything else.
fn distinct(ids: &[StackId], whole: &[Vec<Frame>], shown: &[Vec<Frame>]) -> Vec<Vec<Entry>> {
    let waits: Vec<_> = ids
        .iter()
        .filter(|&&id| !is_deadline(&whole[id as usize]))
        .collect();
    let chosen = if waits.is_empty() {
        ids.iter().collect()
    } else {
        waits
    };
    chosen
        .into_iter()
        .map(|&id| shown[id as usize].iter().map(Entry::from).collect())
        .collect()
}

/// A child's stacks beneath the wait of the request that is joined with it; the
/// request's own if it waits for something else.
fn under_parent(parents: Vec<Vec<Entry>>, children: &[Vec<Entry>]) -> Vec<Vec<Entry>> {
    let joins = |stack: &Vec<Entry>| {
        stack.last().is_some_and(|leaf| {
            [
                "tokio::task::JoinHandle",
                "tokio::task::JoinSet",
                "futures_util::stream::FuturesUnordered",
            ]
            .iter()
            .any(|join| leaf.label.starts_with(join))
        })
    };
    let Some(join) = parents.iter().find(|stack| joins(stack)) else {
        return parents;
    };
    children
        .iter()
        .map(|child| [join.as_slice(), &[Entry::new(CHILD, Kind::Note)], child].concat())
        .collect()
}

/// Puts a frame into stacks that belong to one sample, where they part.
fn side_by_side(stacks: Vec<Vec<Entry>>) -> Vec<Vec<Entry>> {
    let [first, others @ ..] = stacks.as_slice() else {
        return stacks;
    };
    if others.is_empty() {
        return stacks;
    }
    let shared = |stack: &Vec<Entry>| {
        first
            .iter()
            .zip(stack)
            .take_while(|(a, b)| a.label == b.label)
            .count()
    };
    let shortest = stacks.iter().map(Vec::len).min().unwrap_or_default();
    // Equal stacks part before their last frame.
    let common = others
        .iter()
        .map(shared)
        .min()
        .unwrap_or_default()
        .min(shortest.saturating_sub(1));
    let note = Entry::new(
        &format!("(one of {} waits at once)", stacks.len()),
        Kind::Note,
    );
    stacks
        .into_iter()
        .map(|mut stack| {
            stack.insert(common, note.clone());
            stack
        })
        .collect()
}
