//! Latencies of the last minute by route, in bounded memory.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Most routes with latencies of their own; those of all further ones are added up.
const MAX_ROUTES: usize = 32;
/// Label of the further routes.
const OTHER_ROUTES: &str = "(other routes)";
/// Length of one of the two windows that are kept. Together they cover the last 30 to 60 seconds.
const WINDOW: Duration = Duration::from_secs(30);
/// Buckets between a time and twice that time, so a bucket is at most an eighth as wide as its times are long.
const STEPS: u32 = 8;
/// Longest time that has a bucket of its own, in microseconds: four and a half minutes.
const LONGEST: u32 = (1 << 28) - 1;
const BUCKETS: usize = 1 + bucket(LONGEST);

/// Latency of a route's requests, from their first poll to their answer. Only the first requests of a route and every
/// sixteenth request are timed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RouteLatency {
    /// Label of the route.
    pub route: Arc<str>,
    /// Median of the last 30 to 60 seconds, within 7 %. None if no timed request ended in that time.
    pub p50: Option<Duration>,
    /// 99th percentile of the same time, within 7 %.
    pub p99: Option<Duration>,
    /// Number of timed requests that were answered in that time.
    pub recent: u64,
    /// Number of timed requests that were answered since the route's first.
    pub timed: u64,
    /// Sum of their times.
    pub sum: Duration,
}

/// Latencies of all routes.
#[derive(Debug, Default)]
pub(crate) struct Latencies {
    routes: HashMap<Arc<str>, Route>,
}

#[derive(Debug)]
struct Route {
    recent: Box<[u32; BUCKETS]>,
    /// The window before `recent`.
    before: Box<[u32; BUCKETS]>,
    /// Start of `recent`.
    since: Instant,
    timed: u64,
    sum: Duration,
}

impl Latencies {
    /// Adds a request of `route` that was answered `now`, after `time`.
    pub(crate) fn add(&mut self, route: &Arc<str>, time: Duration, now: Instant) {
        if let Some(known) = self.routes.get_mut(route) {
            return known.add(time, now);
        }
        let name = if self.has_room(now) {
            route.clone()
        } else {
            OTHER_ROUTES.into()
        };
        let known = self.routes.entry(name);
        known.or_insert_with(|| Route::new(now)).add(time, now);
    }

    /// Makes room for another route, unless all were used in the last minute, and returns whether there is room.
    fn has_room(&mut self, now: Instant) -> bool {
        if self.routes.len() >= MAX_ROUTES {
            self.routes.retain(|_, route| !route.is_unused(now));
        }
        self.routes.len() < MAX_ROUTES
    }

    /// Returns the latencies of all routes, the one with the most timed requests first.
    pub(crate) fn all(&mut self, now: Instant) -> Vec<RouteLatency> {
        let mut all = Vec::new();
        for (name, route) in &mut self.routes {
            route.advance(now);
            all.push(RouteLatency {
                route: name.clone(),
                p50: route.quantile(50),
                p99: route.quantile(99),
                recent: route.in_both(),
                timed: route.timed,
                sum: route.sum,
            });
        }
        // Routes with equally many requests go by name, so that each call returns the same order.
        all.sort_by(|a, b| b.timed.cmp(&a.timed).then(a.route.cmp(&b.route)));
        all
    }
}

impl Route {
    fn new(now: Instant) -> Self {
        Self {
            recent: Box::new([0; BUCKETS]),
            before: Box::new([0; BUCKETS]),
            since: now,
            timed: 0,
            sum: Duration::ZERO,
        }
    }

    fn add(&mut self, time: Duration, now: Instant) {
        self.advance(now);
        let micros = u32::try_from(time.as_micros()).unwrap_or(LONGEST);
        self.recent[bucket(micros.min(LONGEST))] += 1;
        self.timed += 1;
        self.sum += time;
    }

    fn is_unused(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) >= 2 * WINDOW
    }

    /// Begins a new window if the recent one is over.
    fn advance(&mut self, now: Instant) {
        if now.saturating_duration_since(self.since) < WINDOW {
            return;
        }
        if self.is_unused(now) {
            self.recent.fill(0);
        }
        std::mem::swap(&mut self.recent, &mut self.before);
        self.recent.fill(0);
        self.since = now;
    }

    fn count(&self, bucket: usize) -> u64 {
        u64::from(self.recent[bucket]) + u64::from(self.before[bucket])
    }

    /// Returns the number of times in both windows.
    fn in_both(&self) -> u64 {
        (0..BUCKETS).map(|bucket| self.count(bucket)).sum()
    }

    /// Returns the smallest time that at least `percent` of the times do not exceed, or None if there are no times.
    fn quantile(&self, percent: u64) -> Option<Duration> {
        let rank = (self.in_both() * percent).div_ceil(100);
        let mut below = 0;
        for bucket in 0..BUCKETS {
            below += self.count(bucket);
            if below > 0 && below >= rank {
                return Some(middle(bucket));
            }
        }
        None
    }
}

/// Returns the bucket of a time in microseconds: one for each time up to [`STEPS`], then [`STEPS`] for each power of two.
const fn bucket(micros: u32) -> usize {
    if micros < STEPS {
        return micros as usize;
    }
    let doublings = micros.ilog2() - STEPS.ilog2();
    (doublings * STEPS + (micros >> doublings)) as usize
}

/// Returns the middle of a bucket.
fn middle(bucket: usize) -> Duration {
    let steps = STEPS as usize;
    if bucket < 2 * steps {
        return Duration::from_micros(bucket as u64);
    }
    let doublings = bucket / steps - 1;
    let begin = (bucket - doublings * steps) << doublings;
    let width = 1 << doublings;
    Duration::from_nanos((2 * begin + width) as u64 * 500)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn every_time_is_near_the_middle_of_its_bucket() {
        let mut micros = 1;
        while micros < LONGEST {
            let told = middle(bucket(micros)).as_secs_f64() * 1e6;
            let off = (told / f64::from(micros) - 1.0).abs();
            assert!(off < 0.07, "{micros}: {told}");
            micros += 1 + micros / 50;
        }
        assert_eq!(bucket(7) + 1, bucket(8));
        assert_eq!(bucket(15) + 1, bucket(16));
    }

    #[test]
    fn the_slowest_hundredth_is_the_99th_percentile_until_a_minute_later() {
        let mut latencies = Latencies::default();
        let (route, began) = ("GET /".into(), Instant::now());
        for number in 0..200 {
            let ms = if number < 197 { 10 } else { 800 };
            latencies.add(&route, millis(ms), began);
        }
        let [seen] = &latencies.all(began + WINDOW)[..] else {
            panic!("one route");
        };
        let near = |told: Option<Duration>, ms: f64| {
            let told = told.expect("requests").as_secs_f64() * 1e3;
            assert!((told / ms - 1.0).abs() < 0.07, "{told} instead of {ms}");
        };
        near(seen.p50, 10.0);
        near(seen.p99, 800.0);
        assert_eq!((seen.timed, seen.sum), (200, millis(1970 + 2400)));
        assert_eq!(seen.recent, 200);
        let later = &latencies.all(began + 3 * WINDOW)[0];
        assert_eq!((later.p50, later.p99, later.timed), (None, None, 200));
        assert_eq!(later.recent, 0);
    }

    #[test]
    fn routes_beyond_the_limit_count_as_others_until_one_falls_silent() {
        let mut latencies = Latencies::default();
        let began = Instant::now();
        for number in 0..MAX_ROUTES + 10 {
            latencies.add(&format!("GET /{number}").into(), millis(1), began);
        }
        let all = latencies.all(began);
        assert_eq!(all.len(), MAX_ROUTES + 1);
        assert_eq!((all[0].route.as_ref(), all[0].timed), (OTHER_ROUTES, 10));
        let later = began + 2 * WINDOW;
        latencies.add(&"GET /new".into(), millis(1), later);
        let all = latencies.all(later);
        assert_eq!((all.len(), all[0].route.as_ref()), (1, "GET /new"));
    }
}
