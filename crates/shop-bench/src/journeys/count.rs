//! Counts of answers and journeys during a run.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::fingerprints::Fingerprints;
use super::objectives::{Kind, Objectives, Turns};

/// Shared by all users, which run on one thread.
pub(crate) struct Counts {
    pub(crate) shop: SocketAddr,
    pub(crate) objectives: Objectives,
    /// Answers that stay the same.
    pub(crate) shipped: Fingerprints,
    turns: RefCell<Turns>,
    /// Number of users that the run wants now.
    pub(crate) users: Cell<usize>,
    /// Start of the counted time; `None` while the shop warms up.
    pub(crate) since: Cell<Option<Instant>>,
    /// Number of all answers and of late ones since the last look, by route.
    step: RefCell<BTreeMap<&'static str, (u64, u64)>>,
    /// Milliseconds of each answer that counts.
    pub(crate) answers: RefCell<BTreeMap<&'static str, Vec<f64>>>,
    /// Bytes of all answers that count.
    pub(crate) bytes: Cell<usize>,
    /// Journeys that count, when each ended.
    pub(crate) journeys: RefCell<Vec<(Kind, Instant)>>,
    /// Number of journeys that were completed with a late answer.
    pub(crate) late_journeys: Cell<u64>,
    pub(crate) broken_journeys: Cell<u64>,
    /// The first answer that was wrong by the rules.
    pub(crate) wrong: RefCell<Option<String>>,
    /// The first reason why one broke.
    pub(crate) broke: RefCell<Option<String>>,
}

impl Counts {
    pub(crate) fn new(shop: SocketAddr, objectives: Objectives) -> Self {
        Self {
            shop,
            objectives,
            shipped: Fingerprints::shipped(),
            turns: RefCell::default(),
            users: Cell::new(1),
            since: Cell::default(),
            step: RefCell::default(),
            answers: RefCell::default(),
            bytes: Cell::default(),
            journeys: RefCell::default(),
            late_journeys: Cell::default(),
            broken_journeys: Cell::default(),
            wrong: RefCell::default(),
            broke: RefCell::default(),
        }
    }

    /// Returns the kind of the next journey.
    pub(crate) fn next(&self) -> Kind {
        self.turns.borrow_mut().next(&self.objectives.journeys)
    }

    /// Counts an answer, and returns whether it came in time.
    pub(crate) fn answer(&self, route: &'static str, after: Duration, bytes: usize) -> bool {
        let in_time = after <= self.objectives.of(route);
        let mut step = self.step.borrow_mut();
        let (all, late) = step.entry(route).or_default();
        *all += 1;
        *late += u64::from(!in_time);
        if self.since.get().is_some() {
            self.bytes.set(self.bytes.get() + bytes);
            let mut answers = self.answers.borrow_mut();
            answers
                .entry(route)
                .or_default()
                .push(after.as_secs_f64() * 1e3);
        }
        in_time
    }

    /// Counts a journey if it ended after the warm-up. It may have begun before, as others end after the run.
    pub(crate) fn journey_ends(&self, kind: Kind, in_time: bool) {
        if self.since.get().is_none() {
            return;
        }
        if in_time {
            self.journeys.borrow_mut().push((kind, Instant::now()));
        } else {
            self.late_journeys.set(self.late_journeys.get() + 1);
        }
    }

    /// Counts a broken journey if it ended after the warm-up, as those that are completed.
    pub(crate) fn journey_breaks(&self, why: String) {
        if self.since.get().is_none() {
            return;
        }
        self.broken_journeys.set(self.broken_journeys.get() + 1);
        self.broke.borrow_mut().get_or_insert(why);
    }

    /// Returns the route that has missed its objective most since the last look, if one has. A route misses it if more
    /// than 1 % of its answers are late, and one more, since a single late answer is chance.
    pub(crate) fn missed(&self) -> Option<&'static str> {
        let step = self.step.take();
        let missed = step
            .into_iter()
            .filter(|(_, (all, late))| *late > 1 + all / 100);
        let worst = missed.max_by_key(|(_, (all, late))| late * 1000 / all);
        worst.map(|(route, _)| route)
    }
}
