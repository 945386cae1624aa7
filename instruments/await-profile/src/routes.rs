//! Routes with the counts of their requests: as many as there is room for.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ecosystem::Answers;

use crate::label::Label;
use crate::slot::Slot;
use crate::timing::Timing;

/// Most route labels that a shard keeps. A new label beyond them replaces the least used one.
/// So paths with identifiers in them, or a scanner's paths, neither grow the table without limit
/// nor push out the busy routes.
pub(crate) const MAX_ROUTES: usize = 256;
/// Most uses that count in a label's favor when another label needs room.
const MAX_USES: u8 = 8;
/// Label of the requests whose own label was replaced or found no room, at index 0 of each shard.
pub(crate) const OTHER_ROUTES: &str = "(other routes)";

/// The way in which a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It was dropped before it had an answer, for example because its client has left.
    Dropped,
    /// It ended with an unknown status.
    Finished,
    /// It was answered with this HTTP status.
    #[cfg_attr(
        not(feature = "tower"),
        allow(dead_code, reason = "only the layer knows HTTP")
    )]
    Answered(u16),
}

/// Number, total time and longest time of requests.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Times {
    pub(crate) count: u64,
    pub(crate) sum: Duration,
    pub(crate) longest: Duration,
}

impl Times {
    fn add(&mut self, time: Duration) {
        self.count += 1;
        self.sum += time;
        self.longest = self.longest.max(time);
    }

    fn add_all(&mut self, other: Times) {
        self.count += other.count;
        self.sum += other.sum;
        self.longest = self.longest.max(other.longest);
    }

    /// Returns the mean time, or None if there are no requests.
    pub(crate) fn mean(self) -> Option<Duration> {
        if self.count == 0 {
            return None;
        }
        Some(self.sum.div_f64(self.count as f64))
    }
}

/// Counts of one route during a profile.
#[derive(Clone, Debug)]
pub(crate) struct RouteCount {
    pub(crate) name: Arc<str>,
    begun: u64,
    pub(crate) finished: u64,
    pub(crate) dropped: u64,
    /// Answers by the class of their HTTP status.
    pub(crate) answers: Answers,
    /// Times of the timed requests that both began and finished during the profile.
    pub(crate) timed: Times,
    /// Times of the timed requests that began during the profile and were dropped.
    pub(crate) dropped_timed: Times,
    /// True if the route counts response bodies, or waits for a service, instead of requests.
    pub(crate) is_part: bool,
    pub(crate) in_flight: usize,
    /// Requests that have ended since the label is kept. Profiles do not set it to zero.
    pub(crate) ended: u64,
    /// Uses of the label, at most `MAX_USES`. It pays one each time that it is spared from replacement.
    uses: u8,
}

impl RouteCount {
    pub(crate) fn new(name: Arc<str>) -> Self {
        RouteCount {
            name,
            begun: 0,
            finished: 0,
            dropped: 0,
            answers: Answers::default(),
            timed: Times::default(),
            dropped_timed: Times::default(),
            is_part: false,
            in_flight: 0,
            ended: 0,
            uses: 0,
        }
    }

    /// Counts a request that begins, and returns the number that have begun.
    pub(crate) fn begin(&mut self) -> u64 {
        self.in_flight += 1;
        self.uses = MAX_USES.min(self.uses + 1);
        self.begun += 1;
        self.begun
    }

    /// Counts a request that ended, after `time` if it is timed.
    pub(crate) fn end(&mut self, slot: &Slot, ending: Ending, time: Option<Duration>) {
        self.in_flight -= 1;
        if slot.is_part && !self.is_part {
            return;
        }
        self.ended += 1;
        let times = match ending {
            Ending::Dropped => {
                self.dropped += 1;
                &mut self.dropped_timed
            }
            Ending::Finished => {
                self.finished += 1;
                &mut self.timed
            }
            Ending::Answered(status) => {
                self.finished += 1;
                self.answers.count(status);
                &mut self.timed
            }
        };
        if let (Some((_, Timing::Profile | Timing::Tail)), Some(time)) = (slot.timed, time) {
            times.add(time);
        }
    }

    /// Returns the counts so far and sets them to zero.
    pub(crate) fn take(&mut self) -> Self {
        let anew = RouteCount {
            in_flight: self.in_flight,
            ended: self.ended,
            uses: self.uses,
            is_part: self.is_part,
            ..RouteCount::new(self.name.clone())
        };
        std::mem::replace(self, anew)
    }

    pub(crate) fn add(&mut self, other: &RouteCount) {
        if other.is_part && !self.is_part {
            return;
        }
        self.finished += other.finished;
        self.dropped += other.dropped;
        self.answers.add(other.answers);
        self.timed.add_all(other.timed);
        self.dropped_timed.add_all(other.dropped_timed);
    }

    fn requests(&self) -> u64 {
        self.finished + self.dropped
    }
}

/// Routes of one shard.
pub(crate) struct Routes {
    /// Counts by the index of the route. The first are those of the other routes.
    pub(crate) counts: Vec<RouteCount>,
    by_name: HashMap<Arc<str>, usize>,
    /// Index of the label that was last considered for replacement.
    hand: usize,
}

/// Index of a route in its shard.
pub(crate) struct RouteIndex {
    pub(crate) index: usize,
    /// True if another label has just been given up for this one.
    pub(crate) is_replaced: bool,
}

impl RouteIndex {
    /// Returns the index of a label that took no other label's place.
    fn known(index: usize) -> Self {
        Self {
            index,
            is_replaced: false,
        }
    }
}

impl Routes {
    pub(crate) fn new() -> Self {
        Routes {
            counts: vec![RouteCount::new(OTHER_ROUTES.into())],
            by_name: HashMap::new(),
            hand: 0,
        }
    }

    /// Returns the index of a label, which gets one if it has none. It is 0 if there is no room.
    pub(crate) fn index_of(&mut self, label: &Label) -> RouteIndex {
        // Most services have few routes, so compare the first ones without hashing.
        let bytes = label.as_bytes();
        for (index, route) in self.counts.iter().enumerate().take(5).skip(1) {
            if route.name.as_bytes() == bytes {
                return RouteIndex::known(index);
            }
        }
        let text = label.as_str();
        if let Some(&index) = self.by_name.get(text) {
            return RouteIndex::known(index);
        }
        let name: Arc<str> = text.into();
        if self.counts.len() <= MAX_ROUTES {
            let index = self.counts.len();
            self.counts.push(RouteCount::new(name.clone()));
            self.by_name.insert(name, index);
            return RouteIndex::known(index);
        }
        let Some(index) = self.make_room() else {
            return RouteIndex::known(0);
        };
        self.counts[index] = RouteCount::new(name.clone());
        self.by_name.insert(name, index);
        RouteIndex {
            index,
            is_replaced: true,
        }
    }

    /// Gives up a label that has no requests in flight and no uses left, and returns its index.
    /// Each idle label that it spares loses one use, so labels that are used often stay longest.
    /// Returns None if all labels have requests in flight.
    fn make_room(&mut self) -> Option<usize> {
        let mut in_use = 0;
        while in_use < MAX_ROUTES {
            self.hand = self.hand % MAX_ROUTES + 1;
            let route = &mut self.counts[self.hand];
            if route.in_flight > 0 {
                in_use += 1;
            } else if route.uses > 0 {
                route.uses -= 1;
                in_use = 0;
            } else {
                let count = route.take();
                self.by_name.remove(&count.name);
                self.counts[0].add(&count);
                return Some(self.hand);
            }
        }
        None
    }

    #[cfg(test)]
    pub(crate) fn named(&self) -> usize {
        self.by_name.len()
    }
}

/// Adds up the routes with the fewest requests as other routes, so that there are at most as many as one shard keeps.
pub(crate) fn at_most_as_one_shard(routes: &mut HashMap<Arc<str>, RouteCount>) {
    if routes.len() <= MAX_ROUTES + 1 {
        return;
    }
    let name: Arc<str> = OTHER_ROUTES.into();
    let mut others = match routes.remove(&name) {
        Some(others) => others,
        None => RouteCount::new(name.clone()),
    };
    let mut all: Vec<RouteCount> = routes.drain().map(|(_, count)| count).collect();
    // Routes with equally many requests go by name, so that each call keeps the same ones.
    all.sort_by(|a, b| (b.requests(), &a.name).cmp(&(a.requests(), &b.name)));
    for (place, count) in all.into_iter().enumerate() {
        if place < MAX_ROUTES {
            routes.insert(count.name.clone(), count);
        } else {
            others.add(&count);
        }
    }
    routes.insert(name, others);
}
