//! The requests in flight, so that one of them can be chosen at random.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::time::{Duration, Instant};

use crate::label::Label;
use crate::lock::lock;
use crate::session::Mark;
use crate::slot::Slot;

/// So many that two threads seldom lock the same one.
const SHARDS: usize = 32;
/// Route labels beyond this many in a shard are counted as one, so that paths with
/// identifiers in them do not grow the table without limit.
const MAX_ROUTES: usize = 256;
/// Reading the clock costs as much as all the rest of registering, so every sixteenth
/// request is timed.
const TIMED_EVERY: u32 = 16;
/// Slots that a shard keeps for further requests: allocating and freeing one costs more
/// than all the rest of registering. So many take a tenth of a megabyte.
const MAX_FREE: usize = 1024;
const OTHER_ROUTES: &str = "(other routes)";

/// What is counted of a route while a profile is taken.
#[derive(Clone, Debug)]
pub(crate) struct RouteCount {
    pub(crate) name: Arc<str>,
    pub(crate) finished: u64,
    pub(crate) dropped: u64,
    /// Of those that both began and finished during the profile, every sixteenth.
    pub(crate) timed: u64,
    pub(crate) time: Duration,
}

#[derive(Default)]
struct Shard {
    slots: Vec<Arc<Slot>>,
    routes: Vec<RouteCount>,
    by_name: HashMap<Arc<str>, usize>,
    inserted: u32,
    /// Slots without other references, for further requests.
    free: Vec<Arc<Slot>>,
}

/// On cache lines of its own. 128 bytes, since most CPUs fetch lines in pairs.
#[derive(Default)]
#[repr(align(128))]
struct Padded {
    shard: Mutex<Shard>,
    /// `slots.len()`, for a choice that is weighted without taking every lock.
    len: AtomicUsize,
}

/// All requests in flight that are wrapped.
pub(crate) struct Registry {
    shards: [Padded; SHARDS],
}

impl Registry {
    pub(crate) fn new() -> Self {
        Registry {
            shards: std::array::from_fn(|_| Padded::default()),
        }
    }

    /// Registers a request. `waker` is that of its first poll; `timed` if its time may
    /// be measured, which is done for one in sixteen.
    pub(crate) fn insert(
        &self,
        label: &Label,
        waker: Waker,
        is_body: bool,
        timed: bool,
    ) -> Arc<Slot> {
        let home = home_shard();
        let padded = &self.shards[home];
        let mut shard = lock(&padded.shard);
        let route = shard.route(label);
        shard.inserted = shard.inserted.wrapping_add(1);
        let began = (timed && shard.inserted.is_multiple_of(TIMED_EVERY)).then(Instant::now);
        let slot = shard.slot(Slot::request(waker, home, route, is_body, began));
        slot.place.store(shard.slots.len(), Ordering::Relaxed);
        shard.slots.push(slot.clone());
        padded.len.store(shard.slots.len(), Ordering::Relaxed);
        slot
    }

    /// Removes a request, and counts it for its route as finished or as dropped.
    /// Returns the marks that no poll will answer.
    #[inline]
    pub(crate) fn remove(&self, mut slot: Arc<Slot>, finished: bool) -> Vec<Mark> {
        let padded = &self.shards[slot.shard];
        let mut shard = lock(&padded.shard);
        let place = slot.place.load(Ordering::Relaxed);
        // `slot` is another reference, so that nothing is freed under the lock.
        shard.slots.swap_remove(place);
        if let Some(moved) = shard.slots.get(place) {
            moved.place.store(place, Ordering::Relaxed);
        }
        padded.len.store(shard.slots.len(), Ordering::Relaxed);
        shard.routes[slot.route].count(&slot, finished);
        let Some(own) = Arc::get_mut(&mut slot) else {
            // The sampler or a kept waker refers to it as well.
            drop(shard);
            return slot.retire();
        };
        let (waker, rare) = own.empty();
        if shard.free.len() < MAX_FREE {
            shard.free.push(slot);
        }
        // The waker may own the task that is being polled: drop it outside the lock.
        drop(shard);
        drop(waker);
        rare.map_or_else(Vec::new, |rare| rare.marks)
    }

    pub(crate) fn len(&self) -> usize {
        self.shards
            .iter()
            .map(|padded| padded.len.load(Ordering::Relaxed))
            .sum()
    }

    /// One request in flight, each with the same probability; with the label of
    /// its route, and how many there were to choose from.
    pub(crate) fn any(&self, random: &mut fastrand::Rng) -> Option<(Arc<Slot>, Arc<str>, usize)> {
        loop {
            let len = self.len();
            if len == 0 {
                return None;
            }
            let mut nth = random.usize(..len);
            for padded in &self.shards {
                let here = padded.len.load(Ordering::Relaxed);
                if nth < here {
                    let shard = lock(&padded.shard);
                    // It may have shrunk since its length was read: choose again.
                    let Some(slot) = shard.slots.get(nth) else {
                        break;
                    };
                    return Some((slot.clone(), shard.routes[slot.route].name.clone(), len));
                }
                nth -= here;
            }
        }
    }

    /// All requests in flight, shard by shard, so that no lock is held for long.
    pub(crate) fn each_shard(&self) -> impl Iterator<Item = Vec<Arc<Slot>>> {
        self.shards
            .iter()
            .map(|padded| lock(&padded.shard).slots.clone())
    }

    /// Sets the counts of all routes to zero. A shard without requests drops its routes.
    pub(crate) fn reset_routes(&self) {
        for padded in &self.shards {
            let mut shard = lock(&padded.shard);
            if shard.slots.is_empty() {
                shard.routes.clear();
                shard.by_name.clear();
            }
            for route in &mut shard.routes {
                *route = RouteCount::new(route.name.clone());
            }
        }
    }

    /// The counts by route.
    pub(crate) fn routes(&self) -> HashMap<Arc<str>, RouteCount> {
        let mut routes: HashMap<Arc<str>, RouteCount> = HashMap::new();
        for padded in &self.shards {
            for route in &lock(&padded.shard).routes {
                let sum = routes
                    .entry(route.name.clone())
                    .or_insert_with(|| RouteCount::new(route.name.clone()));
                sum.finished += route.finished;
                sum.dropped += route.dropped;
                sum.timed += route.timed;
                sum.time += route.time;
            }
        }
        routes
    }
}

impl Shard {
    fn slot(&mut self, slot: Slot) -> Arc<Slot> {
        if let Some(mut free) = self.free.pop()
            && let Some(place) = Arc::get_mut(&mut free)
        {
            *place = slot;
            return free;
        }
        Arc::new(slot)
    }

    fn route(&mut self, label: &Label) -> usize {
        // Most services have few routes.
        let bytes = label.as_bytes();
        if let Some(route) = self
            .routes
            .iter()
            .take(4)
            .position(|route| route.name.as_bytes() == bytes)
        {
            return route;
        }
        let label = label.as_str();
        if let Some(&route) = self.by_name.get(label) {
            return route;
        }
        if self.routes.len() >= MAX_ROUTES && label != OTHER_ROUTES {
            return self.route(&OTHER_ROUTES.into());
        }
        let name: Arc<str> = label.into();
        self.routes.push(RouteCount::new(name.clone()));
        self.by_name.insert(name, self.routes.len() - 1);
        self.routes.len() - 1
    }
}

impl RouteCount {
    fn new(name: Arc<str>) -> Self {
        RouteCount {
            name,
            finished: 0,
            dropped: 0,
            timed: 0,
            time: Duration::ZERO,
        }
    }

    fn count(&mut self, slot: &Slot, finished: bool) {
        if slot.is_body {
            return;
        }
        if !finished {
            self.dropped += 1;
            return;
        }
        self.finished += 1;
        if let Some(began) = slot.began {
            self.timed += 1;
            self.time += began.elapsed();
        }
    }
}

/// The shard that this thread registers in.
fn home_shard() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static HOME: usize = NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS;
    }
    HOME.with(|home| *home)
}
