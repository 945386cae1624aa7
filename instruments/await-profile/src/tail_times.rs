//! Times of the requests of a tail profile.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::ended::{LeftOut, RequestId};
use crate::percentile::Percentile;
use crate::routes::{MAX_ROUTES, OTHER_ROUTES};
use crate::slot::Slot;

/// Steps of a histogram between a time and its double: a step is 0.8 % or less.
const STEPS: u64 = 128;
/// Times below two microseconds share the first steps.
const SHORTEST: u32 = 11;
/// Number of doublings, up to about an hour. Longer times count as that.
const DOUBLINGS: u64 = 31;

/// Times of all requests by route, and of the sampled ones one by one.
///
/// A histogram takes at most 32 KiB, and there are as many as a shard has routes: 8 MiB in all. A sampled request
/// takes 16 bytes, and 40 more while it is in flight.
pub(crate) struct TailTimes {
    since: Instant,
    pub(crate) percentile: Percentile,
    /// Times of the requests that samples fell on. None if a request has not ended, or its time was lost.
    pub(crate) sampled: Vec<Option<Duration>>,
    /// Index into `sampled` of each sampled request in flight.
    in_flight: HashMap<RequestId, u32>,
    pub(crate) routes: HashMap<Arc<str>, Histogram>,
    pub(crate) left_out: LeftOut,
}

impl TailTimes {
    pub(crate) fn new(percentile: Percentile, since: Instant) -> Self {
        TailTimes {
            since,
            percentile,
            sampled: Vec::new(),
            in_flight: HashMap::new(),
            routes: HashMap::new(),
            left_out: LeftOut::default(),
        }
    }

    /// Returns the index of a request that a sample falls on, or None if it began before the profile.
    pub(crate) fn request_of(&mut self, slot: &Slot) -> Option<u32> {
        if slot.number == 0 || slot.began()? < self.since {
            return None;
        }
        let id = RequestId {
            shard: slot.shard,
            number: slot.number,
        };
        let next = u32::try_from(self.sampled.len()).ok()?;
        let index = *self.in_flight.entry(id).or_insert(next);
        if index == next {
            self.sampled.push(None);
        }
        Some(index)
    }

    /// Counts a request that has ended.
    pub(crate) fn end(&mut self, route: &Arc<str>, id: RequestId, took: Duration) {
        if let Some(index) = self.in_flight.remove(&id) {
            self.sampled[index as usize] = Some(took);
        }
        if let Some(histogram) = self.routes.get_mut(route) {
            histogram.add(took);
            return;
        }
        let has_room = self.routes.len() < MAX_ROUTES;
        let name = if has_room {
            route.clone()
        } else {
            OTHER_ROUTES.into()
        };
        self.routes.entry(name).or_default().add(took);
    }
}

/// Numbers of requests by their time, in steps of at most 0.8 %.
#[derive(Default)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
}

/// Boundary between the slowest requests of a route and the rest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cut {
    /// Latency at the percentile.
    pub(crate) percentile: Duration,
    /// Shortest time of the slowest requests.
    pub(crate) from: Duration,
    pub(crate) slowest: Total,
    pub(crate) rest: Total,
}

/// Number and total seconds of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Total {
    pub(crate) requests: u64,
    pub(crate) seconds: f64,
}

impl Total {
    fn add(&mut self, requests: u64, each: f64) {
        self.requests += requests;
        self.seconds += requests as f64 * each;
    }

    /// Returns the mean time in seconds, or 0 if there are no requests.
    pub(crate) fn mean(self) -> f64 {
        self.seconds / self.requests.max(1) as f64
    }
}

impl Histogram {
    pub(crate) fn add(&mut self, took: Duration) {
        let step = step_of(took);
        if self.counts.len() <= step {
            self.counts.resize(step + 1, 0);
        }
        self.counts[step] += 1;
    }

    /// Adds the requests of another histogram.
    pub(crate) fn add_all(&mut self, other: &Histogram) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
    }

    pub(crate) fn requests(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Divides the requests so that the slowest are as near to the share above `percentile` as the steps allow.
    /// Returns None if there are no requests.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the share of a number of requests is positive, and no larger than it"
    )]
    pub(crate) fn cut(&self, percentile: Percentile) -> Option<Cut> {
        // The product of a share may lie a hair above a whole number.
        let wanted = (self.requests() as f64 * percentile.beyond() - 1e-6).ceil();
        let wanted = (wanted as u64).max(1);
        let mut above = 0;
        let mut at = None;
        for (step, count) in self.counts.iter().enumerate().rev() {
            if above + count >= wanted {
                at = Some((step, above, above + count));
                break;
            }
            above += count;
        }
        let (step, above, with) = at?;
        let is_above_nearer = above > 0 && wanted - above < with - wanted;
        let first = if is_above_nearer { step + 1 } else { step };
        let mut cut = Cut {
            percentile: begin_of(step),
            from: begin_of(first),
            slowest: Total::default(),
            rest: Total::default(),
        };
        for (step, &count) in self.counts.iter().enumerate() {
            let middle = (begin_of(step) + begin_of(step + 1)).as_secs_f64() / 2.0;
            if step < first {
                cut.rest.add(count, middle);
            } else {
                cut.slowest.add(count, middle);
            }
        }
        Some(cut)
    }
}

/// Returns the step of a time: one of [`STEPS`] equal ones between two powers of two.
fn step_of(took: Duration) -> usize {
    let last = DOUBLINGS * STEPS - 1;
    let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
    let nanos = nanos.max(1 << SHORTEST);
    let doubling = nanos.ilog2();
    let within = (nanos >> (doubling - STEPS.ilog2())) % STEPS;
    let step = u64::from(doubling - SHORTEST) * STEPS + within;
    usize::try_from(step.min(last)).unwrap_or(usize::MAX)
}

/// Returns the shortest time of a step.
fn begin_of(step: usize) -> Duration {
    let step = step as u64;
    let shift = step / STEPS + u64::from(SHORTEST - STEPS.ilog2());
    Duration::from_nanos((STEPS + step % STEPS) << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p99() -> Percentile {
        Percentile::new(99.0).unwrap()
    }

    fn histogram(micros: impl Iterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::default();
        for micros in micros {
            histogram.add(Duration::from_micros(micros));
        }
        histogram
    }

    #[test]
    fn a_step_is_at_most_a_hundredth_of_its_time() {
        for micros in [3, 7, 50, 999, 12_345, 1_000_000, 3_599_000_000] {
            let took = Duration::from_micros(micros);
            let (begin, end) = (begin_of(step_of(took)), begin_of(step_of(took) + 1));
            assert!(begin <= took && took < end, "{begin:?} {took:?} {end:?}");
            assert!(end < begin.mul_f64(1.01));
        }
        assert_eq!(step_of(Duration::ZERO), 0);
        assert_eq!(step_of(Duration::MAX), step_of(Duration::from_secs(7200)));
    }

    #[test]
    fn the_slowest_are_as_many_as_the_percentile_says() {
        // 1 ms to 10 s, one request each millisecond.
        let cut = histogram((1..=10_000).map(|millis| millis * 1000)).cut(p99());
        let cut = cut.unwrap();
        assert_eq!(cut.slowest.requests + cut.rest.requests, 10_000);
        assert!((60..=140).contains(&cut.slowest.requests), "{cut:?}");
        assert!(
            (9.8..=9.95).contains(&cut.percentile.as_secs_f64()),
            "{cut:?}"
        );
        assert!((4.9..=5.0).contains(&cut.rest.mean()), "{cut:?}");
    }

    #[test]
    fn equally_slow_requests_are_not_torn_apart() {
        let times = (0..2000).map(|number| if number < 16 { 900_000 } else { 10_000 });
        let cut = histogram(times).cut(p99()).unwrap();
        assert_eq!((cut.slowest.requests, cut.rest.requests), (16, 1984));
        assert!(cut.from > Duration::from_millis(10), "{cut:?}");
        assert!(Histogram::default().cut(p99()).is_none());
    }
}
