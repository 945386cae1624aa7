//! A finished profile.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::fold::{Folder, Share};
use crate::frames::{Frame, Frames, resolve_stack};
use crate::options::ProfileOptions;
use crate::registry::RouteCount;
use crate::sampler::{Collected, Sample};
use crate::shared::Shared;
use crate::slot::lock;
use crate::summary::{RouteSummary, Summary};
use crate::view::own_view;

/// What the requests in flight were waiting for, sampled over some time.
///
/// A share always means the share of the requests in flight, averaged over time.
pub struct Profile {
    pub(crate) samples: Vec<Sample>,
    pub(crate) idle: u64,
    pub(crate) missed: u64,
    /// Outermost frame first.
    pub(crate) stacks: Vec<Vec<Frame>>,
    pub(crate) own_stacks: Vec<Vec<Frame>>,
    pub(crate) elapsed: Duration,
    pub(crate) budget: u32,
    pub(crate) late: u64,
    pub(crate) late_time: Duration,
    pub(crate) routes: HashMap<Arc<str>, RouteCount>,
    scheduling_delay: Histogram<u64>,
    capture_cost: Histogram<u64>,
}

impl Profile {
    pub(crate) fn new(
        shared: &Shared,
        options: &ProfileOptions,
        collected: Collected,
        routes: HashMap<Arc<str>, RouteCount>,
    ) -> Self {
        let own_crates = options.own_crates.as_deref();
        let mut cache = lock(&shared.symbols);
        let stacks: Vec<Vec<Frame>> = collected
            .stacks
            .iter()
            .map(|stack| {
                let symbols: Vec<_> = stack
                    .iter()
                    .map(|&address| cache.resolve(address))
                    .collect();
                resolve_stack(&symbols, own_crates)
            })
            .collect();
        drop(cache);
        Profile {
            own_stacks: stacks.iter().map(|stack| own_view(stack)).collect(),
            stacks,
            samples: collected.samples,
            idle: collected.idle,
            missed: collected.missed,
            elapsed: collected.elapsed,
            budget: options.captures_per_second,
            late: shared.late.load(std::sync::atomic::Ordering::Relaxed),
            late_time: Duration::from_nanos(
                shared.late_nanos.load(std::sync::atomic::Ordering::Relaxed),
            ),
            routes,
            scheduling_delay: histogram(&collected.delays),
            capture_cost: histogram(&collected.costs),
        }
    }

    /// The stacks as text, one line each: frames from the route inwards with `;`
    /// between them, a space, and the microseconds that requests spent there, all
    /// requests together. It is what flamegraph tools read.
    ///
    /// A request that waits for several things at once counts to each of them in
    /// equal parts, beneath a frame that says so.
    pub fn folded(&self, frames: Frames) -> String {
        use std::fmt::Write;
        let mut folded = String::new();
        for (stack, micros) in self.weights(frames).lines() {
            let _ = writeln!(folded, "{stack} {micros}");
        }
        folded
    }

    /// Every place where requests waited, with its share, the largest first.
    pub fn shares(&self, frames: Frames) -> Vec<Share> {
        self.weights(frames).shares(self)
    }

    /// Request-microseconds by stack.
    pub(crate) fn weights(&self, frames: Frames) -> Folder {
        let stacks = if frames == Frames::Own {
            &self.own_stacks
        } else {
            &self.stacks
        };
        let mut folder = Folder::default();
        for sample in &self.samples {
            folder.add(sample, self.weight_of(sample), &self.stacks, stacks);
        }
        folder
    }

    /// The request-microseconds that a sample stands for: the requests in flight
    /// at its moment, for as long as a moment stands for.
    pub(crate) fn weight_of(&self, sample: &Sample) -> f64 {
        let moments = self.moments();
        if moments == 0 {
            return 0.0;
        }
        f64::from(sample.in_flight) * self.elapsed.as_secs_f64() * 1e6 / moments as f64
    }

    /// All moments at which a look was taken.
    fn moments(&self) -> u64 {
        self.samples.len() as u64 + self.idle
    }

    /// Requests in flight, averaged over time.
    pub fn mean_in_flight(&self) -> f64 {
        match self.moments() {
            0 => 0.0,
            moments => {
                self.samples
                    .iter()
                    .map(|sample| f64::from(sample.in_flight))
                    .sum::<f64>()
                    / moments as f64
            }
        }
    }

    /// Requests finished during the profile, response bodies not counted.
    pub fn finished(&self) -> u64 {
        self.routes.values().map(|route| route.finished).sum()
    }

    /// Mean time of a request by [Little's law]: the mean number in flight divided
    /// by the number finished a second. None if none finished.
    ///
    /// It holds if as many requests finish as begin, and unlike a mean of measured
    /// times it counts requests that take longer than the profile.
    ///
    /// [Little's law]: https://doi.org/10.1287/opre.9.3.383
    pub fn mean_latency(&self) -> Option<Duration> {
        little(self.mean_in_flight(), self.finished(), self.elapsed)
    }

    /// The time from asking a waiting request to its poll, in nanoseconds: how long
    /// the runtime takes to get to a task that is ready.
    pub fn scheduling_delay(&self) -> &Histogram<u64> {
        &self.scheduling_delay
    }

    /// The time that each capture of a call stack took, in nanoseconds.
    pub fn capture_cost(&self) -> &Histogram<u64> {
        &self.capture_cost
    }

    /// The figures of this profile.
    pub fn summary(&self) -> Summary {
        Summary::of(self)
    }

    /// Figures by route, the one with most requests in flight first.
    pub fn routes(&self) -> Vec<RouteSummary> {
        let mut in_flight: BTreeMap<Arc<str>, (u64, f64)> = BTreeMap::new();
        for sample in &self.samples {
            let (samples, sum) = in_flight.entry(sample.route.clone()).or_default();
            *samples += 1;
            *sum += f64::from(sample.in_flight);
        }
        let moments = self.moments().max(1) as f64;
        let names: HashSet<_> = in_flight
            .keys()
            .chain(self.routes.keys())
            .cloned()
            .collect();
        let mut routes: Vec<_> = names
            .into_iter()
            .filter_map(|name| {
                let (samples, sum) = in_flight.get(&name).copied().unwrap_or_default();
                let count = self.routes.get(&name);
                let finished = count.map_or(0, |count| count.finished);
                let dropped = count.map_or(0, |count| count.dropped);
                if samples + finished + dropped == 0 {
                    return None;
                }
                let mean_in_flight = sum / moments;
                Some(RouteSummary {
                    samples,
                    share: sum / (self.mean_in_flight() * moments).max(f64::MIN_POSITIVE),
                    mean_in_flight,
                    finished,
                    dropped,
                    latency_ms: little(mean_in_flight, finished, self.elapsed).map(millis),
                    measured_latency_ms: count
                        .filter(|count| count.timed > 0)
                        .map(|count| millis(count.time) / count.timed as f64),
                    route: name.to_string(),
                })
            })
            .collect();
        routes.sort_by(|a, b| {
            b.share
                .total_cmp(&a.share)
                .then_with(|| a.route.cmp(&b.route))
        });
        routes
    }
}

impl std::fmt::Debug for Profile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Profile")
            .field("summary", &self.summary())
            .finish_non_exhaustive()
    }
}

pub(crate) fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Mean time in a system: mean number in it over the rate of leaving it.
fn little(mean_in_flight: f64, finished: u64, elapsed: Duration) -> Option<Duration> {
    if finished == 0 {
        return None;
    }
    Duration::try_from_secs_f64(mean_in_flight * elapsed.as_secs_f64() / finished as f64).ok()
}

/// To three figures, from a nanosecond to an hour.
fn histogram(durations: &[Duration]) -> Histogram<u64> {
    const HOUR: u64 = 3_600_000_000_000;
    let Ok(mut histogram) = Histogram::new_with_bounds(1, HOUR, 3) else {
        unreachable!("the bounds are constants that hdrhistogram allows")
    };
    for duration in durations {
        histogram.saturating_record(
            u64::try_from(duration.as_nanos())
                .unwrap_or(HOUR)
                .clamp(1, HOUR),
        );
    }
    histogram
}
