//! The requests in flight, so that one of them can be chosen at random.

use std::collections::HashMap;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use crate::answers::Answers;
use crate::ended::{Ended, LeftOut, RequestId};
use crate::label::Label;
use crate::latency::{Latencies, RouteLatency};
use crate::lock::lock;
use crate::session::Mark;
use crate::slot::{NotWaiting, Slot};
use crate::sync::{AtomicUsize, Mutex, Ordering, SHARDS};
use crate::timing::Timing;

/// Most route labels that a shard keeps. A new label beyond them replaces the least used one.
/// So paths with identifiers in them, or a scanner's paths, neither grow the table without limit
/// nor push out the busy routes.
pub(crate) const MAX_ROUTES: usize = 256;
/// Most uses that count in a label's favor when another label needs room.
const MAX_USES: u8 = 8;
/// Distance between requests that are timed: every sixteenth one is. Reading the clock costs as
/// much as all the rest of registering.
const TIMED_EVERY: u32 = 16;
/// Number of first requests of a route that are all timed, so that rare routes have times too.
const TIMED_FIRST: u64 = 32;
/// Most slots that a shard keeps for further requests; together they take a tenth of a megabyte.
/// Allocating and freeing a slot costs more than all the rest of registering.
const MAX_FREE: usize = 1024;
/// Most requests of a shard that are looked at for one that is being polled.
const MOST_LOOKED_AT: usize = 1024;
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

/// Requests of one route, as [`AwaitProfiler::traffic`](crate::AwaitProfiler::traffic) returns them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RouteTraffic {
    /// The route's name.
    pub route: Arc<str>,
    /// Requests in flight.
    pub in_flight: usize,
    /// Requests that have ended. A rare route may begin at zero again, when its place in the registry was given away.
    pub ended: u64,
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
    in_flight: usize,
    /// Requests that have ended since the label is kept. Profiles do not set it to zero.
    ended: u64,
    /// Uses of the label, at most `MAX_USES`. It pays one each time that it is spared from replacement.
    uses: u8,
}

struct Shard {
    slots: Vec<Arc<Slot>>,
    routes: Vec<RouteCount>,
    by_name: HashMap<Arc<str>, usize>,
    /// Index of the label that was last considered for replacement.
    hand: usize,
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
        let lock = self.latencies.lock();
        lock.unwrap_or_else(std::sync::PoisonError::into_inner)
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
        let nth = shard.routes[route].begin();
        // The label for other routes counts requests only.
        shard.routes[route].is_part |= is_part && route > 0;
        shard.inserted = shard.inserted.wrapping_add(1);
        let is_due = nth <= TIMED_FIRST || shard.inserted % TIMED_EVERY == 0;
        // A tail profile times each of them.
        let is_followed = timing == Timing::Profile && shard.ended.is_some();
        let timing = if is_due || timing == Timing::Nothing {
            timing
        } else {
            Timing::Tail
        };
        let is_timed = is_followed || is_due && timing != Timing::Nothing;
        let timed = is_timed.then(|| (Instant::now(), timing));
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
        let route = &mut shard.routes[slot.route];
        route.in_flight -= 1;
        let time = slot.timed.map(|(began, _)| began.elapsed());
        route.count(&slot, ending, time);
        let latency = time.filter(|_| counts_for_latency(&slot, ending));
        let latency = latency.map(|time| (route.name.clone(), time));
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
        rare.map_or_else(Vec::new, |rare| rare.marks)
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
                    return Some((slot.clone(), shard.routes[slot.route].name.clone(), len));
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
            let mut slots = shard.slots.iter().take(MOST_LOOKED_AT);
            let running = slots.find(|slot| slot.not_waiting() == Some(NotWaiting::Running));
            if let Some(slot) = running {
                return Some(shard.routes[slot.route].name.clone());
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
            let ended = locked.ended.as_mut().map(Ended::take).unwrap_or_default();
            if ended.is_empty() {
                continue;
            }
            let names: Vec<_> = locked
                .routes
                .iter()
                .map(|route| route.name.clone())
                .collect();
            drop(locked);
            for request in ended {
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
            for route in &mut lock(&padded.shard).routes {
                route.take();
            }
        }
    }

    /// Returns the requests of each route that has had any: those in flight, and the number that have ended.
    pub(crate) fn traffic(&self) -> Vec<RouteTraffic> {
        let mut routes: HashMap<Arc<str>, RouteTraffic> = HashMap::new();
        for padded in &self.shards {
            for route in &lock(&padded.shard).routes {
                if route.is_part || (route.in_flight == 0 && route.ended == 0) {
                    continue;
                }
                let new = || RouteTraffic {
                    route: route.name.clone(),
                    in_flight: 0,
                    ended: 0,
                };
                let sum = routes.entry(route.name.clone()).or_insert_with(new);
                sum.in_flight += route.in_flight;
                sum.ended += route.ended;
            }
        }
        routes.into_values().collect()
    }

    /// Returns the counts by route. A profile keeps them for each of its runs, so there are at most as
    /// many as one shard keeps: the routes with the fewest requests are added up as other routes.
    pub(crate) fn routes(&self) -> HashMap<Arc<str>, RouteCount> {
        let mut routes: HashMap<Arc<str>, RouteCount> = HashMap::new();
        for padded in &self.shards {
            for route in &lock(&padded.shard).routes {
                let sum = routes
                    .entry(route.name.clone())
                    .or_insert_with(|| RouteCount::new(route.name.clone()));
                sum.is_part |= route.is_part;
                sum.add(route);
            }
        }
        if routes.len() > MAX_ROUTES + 1 {
            let name: Arc<str> = OTHER_ROUTES.into();
            let mut sum = routes.remove(&name);
            let sum = sum.get_or_insert_with(|| RouteCount::new(name.clone()));
            let mut all: Vec<_> = routes.into_values().collect();
            let requests = |route: &RouteCount| route.finished + route.dropped;
            // Routes with equally many requests go by name, so that each call returns the same ones.
            all.sort_by(|a, b| requests(b).cmp(&requests(a)).then(a.name.cmp(&b.name)));
            for other in all.drain(MAX_ROUTES..) {
                sum.add(&other);
            }
            routes = all.into_iter().map(|r| (r.name.clone(), r)).collect();
            routes.insert(name, sum.clone());
        }
        routes
    }
}

impl Shard {
    fn new() -> Self {
        Shard {
            slots: Vec::new(),
            routes: vec![RouteCount::new(OTHER_ROUTES.into())],
            by_name: HashMap::new(),
            hand: 0,
            inserted: 0,
            free: Vec::new(),
            ended: None,
        }
    }

    fn slot(&mut self, slot: Slot) -> Arc<Slot> {
        // Only the list refers to this slot.
        if let Some(mut free) = self.free.pop() {
            if let Some(place) = Arc::get_mut(&mut free) {
                *place = slot;
                return free;
            }
        }
        Arc::new(slot)
    }

    fn route(&mut self, label: &Label) -> usize {
        // Most services have few routes, so compare the first ones without hashing.
        let bytes = label.as_bytes();
        let mut first = self.routes[1..].iter().take(4);
        if let Some(route) = first.position(|route| route.name.as_bytes() == bytes) {
            return route + 1;
        }
        let label = label.as_str();
        if let Some(&route) = self.by_name.get(label) {
            return route;
        }
        let name: Arc<str> = label.into();
        let route = if self.routes.len() <= MAX_ROUTES {
            self.routes.push(RouteCount::new(name.clone()));
            self.routes.len() - 1
        } else if let Some(route) = self.make_room() {
            self.routes[route] = RouteCount::new(name.clone());
            route
        } else {
            return 0;
        };
        self.by_name.insert(name, route);
        route
    }

    /// Gives up a label that has no requests in flight and no uses left, and returns its index.
    /// Each idle label that it spares loses one use, so labels that are used often stay longest.
    /// Returns None if all labels have requests in flight.
    fn make_room(&mut self) -> Option<usize> {
        let mut in_use = 0;
        while in_use < MAX_ROUTES {
            self.hand = self.hand % MAX_ROUTES + 1;
            let route = &mut self.routes[self.hand];
            if route.in_flight > 0 {
                in_use += 1;
            } else if route.uses > 0 {
                route.uses -= 1;
                in_use = 0;
            } else {
                let count = route.take();
                self.by_name.remove(&count.name);
                self.routes[0].add(&count);
                if let Some(ended) = &mut self.ended {
                    ended.give_up(self.hand);
                }
                return Some(self.hand);
            }
        }
        None
    }
}

impl RouteCount {
    fn new(name: Arc<str>) -> Self {
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
    fn begin(&mut self) -> u64 {
        self.in_flight += 1;
        self.uses = MAX_USES.min(self.uses + 1);
        self.begun += 1;
        self.begun
    }

    /// Returns the counts so far and sets them to zero.
    fn take(&mut self) -> Self {
        let anew = RouteCount {
            in_flight: self.in_flight,
            ended: self.ended,
            uses: self.uses,
            is_part: self.is_part,
            ..RouteCount::new(self.name.clone())
        };
        std::mem::replace(self, anew)
    }

    fn add(&mut self, other: &RouteCount) {
        if other.is_part && !self.is_part {
            return;
        }
        self.finished += other.finished;
        self.dropped += other.dropped;
        self.answers.add_all(other.answers);
        self.timed.add_all(other.timed);
        self.dropped_timed.add_all(other.dropped_timed);
    }

    /// Counts a request that ended, after `time` if it is timed.
    fn count(&mut self, slot: &Slot, ending: Ending, time: Option<Duration>) {
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
                self.answers.add(status);
                &mut self.timed
            }
        };
        if let (Some((_, Timing::Profile | Timing::Tail)), Some(time)) = (slot.timed, time) {
            times.add(time);
        }
    }
}

/// Returns whether the time of this request counts for the latency of its route.
fn counts_for_latency(slot: &Slot, ending: Ending) -> bool {
    let is_of_tail = matches!(slot.timed, Some((_, Timing::Tail)));
    !slot.is_part && !is_of_tail && ending != Ending::Dropped
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
        assert_eq!(shard.routes[waits.route].name.as_ref(), "GET /waits");
        assert_eq!(shard.by_name.len(), MAX_ROUTES);
        assert_eq!(shard.routes.len(), MAX_ROUTES + 1);
        let bytes: usize = shard.routes.iter().map(|route| route.name.len()).sum();
        assert!(bytes <= shard.routes.len() * 128, "{bytes}");
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
