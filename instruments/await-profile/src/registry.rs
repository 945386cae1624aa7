//! The requests in flight, so that one of them can be chosen at random.

use std::collections::HashMap;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use crate::ended::{Ended, LeftOut, RequestId};
use crate::label::Label;
use crate::latency::{Latencies, RouteLatency};
use crate::lock::lock;
use crate::routes::{Ending, RouteCount, Routes, at_most_as_one_shard};
use crate::session::Mark;
use crate::slot::{NotWaiting, Slot};
use crate::sync::{AtomicUsize, Mutex, Ordering, SHARDS};
use crate::timing::Timing;

/// Distance between requests that are timed: every sixteenth one is. Reading the clock costs as
/// much as all the rest of registering.
const TIMED_EVERY: u32 = 16;
/// Number of first requests of a route that are all timed, so that rare routes have times too.
const TIMED_FIRST: u64 = 32;
/// Most slots that a shard keeps for further requests; together they take a tenth of a megabyte.
/// Allocating and freeing a slot costs more than all the rest of registering.
const MAX_FREE: usize = 1024;
/// Most requests of a shard that are looked at for one that is being polled, or for slow ones.
const MOST_LOOKED_AT: usize = 1024;

struct Shard {
    slots: Vec<Arc<Slot>>,
    routes: Routes,
    inserted: u32,
    /// Slots without other references, for further requests.
    free: Vec<Arc<Slot>>,
    /// Requests that ended, during a tail profile alone.
    ended: Option<Ended>,
}

/// One shard on cache lines of its own: 128 bytes, since most CPUs fetch lines in pairs.
#[repr(align(128))]
struct Padded {
    shard: Mutex<Shard>,
    /// Copy of `slots.len()`, so that a weighted choice need not take every lock.
    len: AtomicUsize,
}

/// All wrapped requests in flight.
pub(crate) struct Registry {
    shards: [Padded; SHARDS],
    /// Connections that were upgraded to another protocol. They are rare, so no shard counts them.
    upgraded: AtomicUsize,
    /// The standard library's lock: it only adds up, so the loom tests need no model of it.
    latencies: std::sync::Mutex<Latencies>,
}

impl Registry {
    pub(crate) fn new() -> Self {
        Registry {
            shards: std::array::from_fn(|_| Padded {
                shard: Mutex::new(Shard::new()),
                len: AtomicUsize::new(0),
            }),
            upgraded: AtomicUsize::new(0),
            latencies: std::sync::Mutex::default(),
        }
    }

    /// Returns the number of connections upgraded to another protocol, such as `WebSockets`, so far.
    pub(crate) fn upgraded(&self) -> usize {
        self.upgraded.load(Ordering::Relaxed)
    }

    /// Returns the latencies of the last minute by route.
    pub(crate) fn latencies(&self) -> Vec<RouteLatency> {
        self.latencies_lock().all(Instant::now())
    }

    fn latencies_lock(&self) -> std::sync::MutexGuard<'_, Latencies> {
        match self.latencies.lock() {
            Ok(latencies) => latencies,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    /// Registers a request. `waker` is the waker of its first poll. Only some of the requests that may be timed are.
    pub(crate) fn insert(
        &self,
        label: &Label,
        waker: Waker,
        is_part: bool,
        timing: Timing,
    ) -> Arc<Slot> {
        let home = home_shard();
        let padded = &self.shards[home];
        let mut shard = lock(&padded.shard);
        let route = shard.route(label);
        let count = &mut shard.routes.counts[route];
        let nth = count.begin();
        // The label for other routes counts requests only.
        count.is_part |= is_part && route > 0;
        shard.inserted = shard.inserted.wrapping_add(1);
        let is_due = nth <= TIMED_FIRST || shard.inserted.is_multiple_of(TIMED_EVERY);
        // A tail profile times each of them.
        let is_followed = timing == Timing::Profile && shard.ended.is_some();
        let timing = if is_due || timing == Timing::Nothing {
            timing
        } else {
            Timing::Tail
        };
        let timed = if is_followed || is_due && timing != Timing::Nothing {
            Some((Instant::now(), timing))
        } else {
            None
        };
        let mut slot = Slot::request(waker, home, route, is_part, timed);
        if is_followed {
            slot.number = shard.inserted.max(1);
        }
        let slot = shard.slot(slot);
        slot.place.store(shard.slots.len(), Ordering::Relaxed);
        shard.slots.push(slot.clone());
        padded.len.store(shard.slots.len(), Ordering::Relaxed);
        slot
    }

    /// Removes a request, counts for its route how it ended, and returns the marks that no poll
    /// will answer.
    #[inline]
    pub(crate) fn remove(&self, mut slot: Arc<Slot>, ending: Ending) -> Vec<Mark> {
        if ending == Ending::Answered(101) {
            self.upgraded.fetch_add(1, Ordering::Relaxed);
        }
        let padded = &self.shards[slot.shard];
        let mut shard = lock(&padded.shard);
        let place = slot.place.load(Ordering::Relaxed);
        // `slot` is another reference, so the removal frees nothing under the lock.
        shard.slots.swap_remove(place);
        if let Some(moved) = shard.slots.get(place) {
            moved.place.store(place, Ordering::Relaxed);
        }
        padded.len.store(shard.slots.len(), Ordering::Relaxed);
        let route = &mut shard.routes.counts[slot.route];
        let time = slot.timed.map(|(began, _)| began.elapsed());
        route.end(&slot, ending, time);
        let latency = match time {
            Some(time) if counts_for_latency(&slot, ending) => Some((route.name.clone(), time)),
            _ => None,
        };
        if let Some(ended) = &mut shard.ended {
            ended.add(&slot, time);
        }
        let Some(own) = Arc::get_mut(&mut slot) else {
            // The sampler or a kept waker also holds a reference.
            drop(shard);
            self.add_latency(latency);
            return slot.retire();
        };
        let (waker, rare) = own.empty();
        if shard.free.len() < MAX_FREE {
            shard.free.push(slot);
        }
        // The waker may own the task that is being polled: drop it outside the lock.
        drop(shard);
        drop(waker);
        self.add_latency(latency);
        match rare {
            Some(rare) => rare.marks,
            None => Vec::new(),
        }
    }

    /// Counts a timed request for the latency of its route. All shards share that lock, so none is held meanwhile.
    fn add_latency(&self, latency: Option<(Arc<str>, Duration)>) {
        if let Some((route, time)) = latency {
            self.latencies_lock().add(&route, time, Instant::now());
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.shards
            .iter()
            .map(|padded| padded.len.load(Ordering::Relaxed))
            .sum()
    }

    /// Returns one request in flight, each with the same probability, the label of its route, and
    /// the number of requests in flight.
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
                    // The shard may have shrunk since its length was read: choose again.
                    let Some(slot) = shard.slots.get(nth) else {
                        break;
                    };
                    let name = shard.routes.counts[slot.route].name.clone();
                    return Some((slot.clone(), name, len));
                }
                nth -= here;
            }
        }
    }

    /// Returns the route of a request that is being polled. Looks at some requests of each shard, to hold its lock
    /// only briefly.
    pub(crate) fn running(&self) -> Option<Arc<str>> {
        for padded in &self.shards {
            if padded.len.load(Ordering::Relaxed) == 0 {
                continue;
            }
            let shard = lock(&padded.shard);
            for slot in shard.slots.iter().take(MOST_LOOKED_AT) {
                if slot.not_waiting() == Some(NotWaiting::Running) {
                    return Some(shard.routes.counts[slot.route].name.clone());
                }
            }
        }
        None
    }

    /// Returns all requests in flight, shard by shard, so that no lock is held for long.
    pub(crate) fn each_shard(&self) -> impl Iterator<Item = Vec<Arc<Slot>>> {
        self.shards
            .iter()
            .map(|padded| lock(&padded.shard).slots.clone())
    }

    /// Follows every request that begins from now on until it ends, for a tail profile. Returns the time from which on.
    pub(crate) fn follow(&self) -> Instant {
        let since = Instant::now();
        for padded in &self.shards {
            lock(&padded.shard).ended = Some(Ended::new(since));
        }
        since
    }

    /// Follows requests no longer.
    pub(crate) fn unfollow(&self) {
        for padded in &self.shards {
            lock(&padded.shard).ended = None;
        }
    }

    /// Calls `each` with the route, the number and the time of each followed request that ended since the last call.
    pub(crate) fn take_ended(&self, mut each: impl FnMut(&Arc<str>, RequestId, Duration)) {
        for (shard, padded) in self.shards.iter().enumerate() {
            let mut locked = lock(&padded.shard);
            let Some(ended) = &mut locked.ended else {
                continue;
            };
            let requests = ended.take();
            if requests.is_empty() {
                continue;
            }
            let counts = locked.routes.counts.iter();
            let names: Vec<Arc<str>> = counts.map(|route| route.name.clone()).collect();
            drop(locked);
            for request in requests {
                let number = request.number;
                each(
                    &names[request.route],
                    RequestId { shard, number },
                    request.took,
                );
            }
        }
    }

    /// Returns the numbers of requests that a tail profile that ends now leaves out.
    pub(crate) fn left_out(&self) -> LeftOut {
        let mut all = LeftOut::default();
        for padded in &self.shards {
            let shard = lock(&padded.shard);
            let Some(ended) = &shard.ended else { continue };
            let here = ended.left_out(shard.slots.iter().map(|slot| &**slot));
            all.earlier += here.earlier;
            all.unfinished += here.unfinished;
            all.lost += here.lost;
        }
        all
    }

    /// Sets the counts of all routes to zero.
    pub(crate) fn reset_counts(&self) {
        for padded in &self.shards {
            for route in &mut lock(&padded.shard).routes.counts {
                route.take();
            }
        }
    }

    /// Returns the number of timed requests of each route that have been in flight for longer than `time`. Looks at some
    /// requests of each shard, to hold its lock only briefly.
    pub(crate) fn in_flight_longer_than(&self, time: Duration) -> HashMap<Arc<str>, u64> {
        let mut routes = HashMap::new();
        for padded in &self.shards {
            if padded.len.load(Ordering::Relaxed) == 0 {
                continue;
            }
            let shard = lock(&padded.shard);
            for slot in shard.slots.iter().take(MOST_LOOKED_AT) {
                let is_slow = slot.began().is_some_and(|began| began.elapsed() > time);
                if is_slow && is_timed_for_latency(slot) {
                    let name = shard.routes.counts[slot.route].name.clone();
                    *routes.entry(name).or_default() += 1;
                }
            }
        }
        routes
    }

    /// Returns the counts by route. A profile keeps them for each of its runs, so there are at most as
    /// many as one shard keeps: the routes with the fewest requests are added up as other routes.
    pub(crate) fn routes(&self) -> HashMap<Arc<str>, RouteCount> {
        let mut routes: HashMap<Arc<str>, RouteCount> = HashMap::new();
        for padded in &self.shards {
            for route in &lock(&padded.shard).routes.counts {
                let sum = routes
                    .entry(route.name.clone())
                    .or_insert_with(|| RouteCount::new(route.name.clone()));
                sum.is_part |= route.is_part;
                sum.add(route);
            }
        }
        at_most_as_one_shard(&mut routes);
        routes
    }
}

impl Shard {
    fn new() -> Self {
        Shard {
            slots: Vec::new(),
            routes: Routes::new(),
            inserted: 0,
            free: Vec::new(),
            ended: None,
        }
    }

    /// Returns the index of a label's route.
    fn route(&mut self, label: &Label) -> usize {
        let route = self.routes.index_of(label);
        if let (true, Some(ended)) = (route.is_replaced, &mut self.ended) {
            ended.give_up(route.index);
        }
        route.index
    }

    fn slot(&mut self, slot: Slot) -> Arc<Slot> {
        // Only the list refers to this slot.
        if let Some(mut free) = self.free.pop()
            && let Some(place) = Arc::get_mut(&mut free)
        {
            *place = slot;
            return free;
        }
        Arc::new(slot)
    }
}

/// Returns whether the time of this request counts for the latency of its route.
fn counts_for_latency(slot: &Slot, ending: Ending) -> bool {
    is_timed_for_latency(slot) && ending != Ending::Dropped
}

/// Returns whether the time of this request will count for the latency of its route, if it is answered.
fn is_timed_for_latency(slot: &Slot) -> bool {
    let is_of_tail = matches!(slot.timed, Some((_, Timing::Tail)));
    slot.timed.is_some() && !slot.is_part && !is_of_tail
}

/// Returns the index of the shard in which this thread registers its requests.
fn home_shard() -> usize {
    // Only spreads threads over the shards, so the loom tests need no model of it.
    static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    thread_local! {
        static HOME: usize = NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS;
    }
    HOME.with(|home| *home)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::{MAX_ROUTES, OTHER_ROUTES};

    fn request(registry: &Registry, label: &str) {
        let slot = registry.insert(
            &Label::new(label),
            Waker::noop().clone(),
            false,
            Timing::Nothing,
        );
        registry.remove(slot, Ending::Finished);
    }

    #[test]
    fn a_scanner_does_not_push_out_the_routes_that_are_loaded() {
        let registry = Registry::new();
        let requests: u64 = if cfg!(miri) { 300 } else { 100_000 };
        let waits = registry.insert(
            &"GET /waits".into(),
            Waker::noop().clone(),
            false,
            Timing::Nothing,
        );
        for number in 0..requests {
            request(
                &registry,
                &format!("GET /.git/{number}/{}", "x".repeat(999)),
            );
            if number % 100 == 0 {
                request(&registry, "GET /cart");
            }
            if number % 10 == 0 {
                request(&registry, "GET /shop");
            }
        }
        let shard = lock(&registry.shards[home_shard()].shard);
        let counts = &shard.routes.counts;
        assert_eq!(counts[waits.route].name.as_ref(), "GET /waits");
        assert_eq!(shard.routes.named(), MAX_ROUTES);
        assert_eq!(counts.len(), MAX_ROUTES + 1);
        let bytes: usize = counts.iter().map(|route| route.name.len()).sum();
        assert!(bytes <= counts.len() * 128, "{bytes}");
        drop(shard);

        let routes = registry.routes();
        let finished = |name: &str| routes.get(name).map_or(0, |route| route.finished);
        assert_eq!(finished("GET /shop"), requests / 10);
        assert_eq!(finished("GET /cart"), requests / 100);
        let all: u64 = routes.values().map(|route| route.finished).sum();
        assert_eq!(
            all,
            requests + requests / 10 + requests / 100,
            "none is lost"
        );
        registry.remove(waits, Ending::Finished);
    }

    /// Each thread uses its own shard and its own paths here.
    #[test]
    fn all_shards_together_count_no_more_routes_than_one() {
        let registry = Registry::new();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let registry = &registry;
                scope.spawn(move || {
                    for number in 0..MAX_ROUTES {
                        request(registry, &format!("GET /{thread}/{number}"));
                    }
                    request(registry, "GET /shop");
                });
            }
        });
        let routes = registry.routes();
        assert!(routes.len() <= MAX_ROUTES + 1, "{}", routes.len());
        assert_eq!(routes["GET /shop"].finished, 4);
        let all: u64 = routes.values().map(|route| route.finished).sum();
        assert_eq!(all, 4 * (MAX_ROUTES as u64 + 1), "none is lost");
    }

    #[test]
    fn a_route_has_a_latency_without_a_profile_of_what_was_answered_alone() {
        let registry = Registry::new();
        let label = Label::new("GET /shop");
        for (timing, is_part, ending) in [
            (Timing::Latency, false, Ending::Answered(200)),
            (Timing::Profile, false, Ending::Finished),
            (Timing::Latency, false, Ending::Dropped),
            (Timing::Latency, true, Ending::Finished),
            (Timing::Nothing, false, Ending::Finished),
        ] {
            let slot = registry.insert(&label, Waker::noop().clone(), is_part, timing);
            registry.remove(slot, ending);
        }
        let latencies = registry.latencies();
        assert_eq!(latencies.len(), 1);
        assert_eq!(latencies[0].route.as_ref(), "GET /shop");
        assert_eq!(latencies[0].timed, 2, "{latencies:?}");
        assert!(latencies[0].p50 <= latencies[0].p99 && latencies[0].p99.is_some());
        // The profile knows the times of its own requests alone.
        assert_eq!(registry.routes()["GET /shop"].timed.count, 1);
    }

    #[test]
    fn requests_in_flight_are_slow_once_they_take_longer() {
        let registry = Registry::new();
        let label = Label::new("GET /shop");
        let begin = |timing, is_part| {
            let waker = Waker::noop().clone();
            registry.insert(&label, waker, is_part, timing)
        };
        let _in_flight = [
            begin(Timing::Latency, false),
            begin(Timing::Latency, true),
            begin(Timing::Nothing, false),
        ];
        let slow = registry.in_flight_longer_than(Duration::ZERO);
        assert_eq!(slow, HashMap::from([("GET /shop".into(), 1)]));
        let hour = Duration::from_secs(3600);
        assert!(registry.in_flight_longer_than(hour).is_empty());
    }

    #[test]
    fn labels_beyond_those_in_flight_count_as_others() {
        let registry = Registry::new();
        let insert = |number: usize| {
            let label = Label::new(&number.to_string());
            registry.insert(&label, Waker::noop().clone(), false, Timing::Nothing)
        };
        let slots: Vec<_> = (0..MAX_ROUTES + 10).map(insert).collect();
        for slot in slots {
            registry.remove(slot, Ending::Finished);
        }
        assert_eq!(registry.routes()[OTHER_ROUTES].finished, 10);
        assert_eq!(
            registry.routes().values().map(|r| r.finished).sum::<u64>(),
            266
        );
    }
}
