//! Figures of a profile.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use ecosystem::{Interval, Place, Release, Requests, Route, Sequence, Unpolled};

use crate::collected::Outcome;
use crate::in_a_row::InARow;
use crate::interval::share_interval;
use crate::profile::{Profile, millis};
use crate::routes::RouteCount;
use crate::stack::Frames;

/// Figures of a profile. The name of a time ends in its unit.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Summary {
    /// Duration of sampling.
    pub seconds: f64,
    /// Requested number of samples per second.
    pub budget_per_second: u32,
    /// Samples taken per second, whether or not anything was in flight.
    pub true_rate_per_second: f64,
    /// Numbers of samples by what they found.
    pub samples: Samples,
    /// Number of requests in flight, averaged over time.
    pub mean_in_flight: f64,
    /// Number of requests that finished during the profile, without response bodies.
    pub finished: u64,
    /// Mean time of a request by Little's law, over all routes. None if no request ended. If
    /// routes differ, it says little: see [`Route::latency_ms`].
    pub mean_latency_ms: Option<f64>,
    /// Interval of the mean time. None if the profile has few moments or few requests.
    pub mean_latency_interval_ms: Option<Interval>,
    /// Number of requests that began before the profile, unregistered, and were registered during it. It is 0
    /// if the profiler was armed before they began.
    pub late_requests: u64,
    /// Sum of the times for which the late requests were in flight unseen.
    pub unseen_request_seconds: f64,
    /// Delay between marking a waiting request and its next poll: the time that the runtime needs to
    /// get to a task that is ready.
    pub scheduling_delay_us: Quantiles,
    /// Time that the capture of one call stack takes.
    pub capture_cost_us: Quantiles,
    /// Figures by route, the route with the most requests in flight first.
    pub routes: Vec<Route>,
    /// Places where requests wait, in frames of your own code, the place with the most requests first.
    pub places: Vec<Place>,
    /// Code that released what requests waited for.
    pub releases: Vec<Release>,
    /// Waits of one request that follow each other at different places.
    pub sequences: Vec<Sequence>,
    /// Futures that requests did not poll while they awaited something else.
    pub unpolled: Vec<Unpolled>,
}

impl Summary {
    /// Returns what was observed of requests, as evidence for rules.
    pub fn into_requests(self) -> Requests {
        Requests {
            in_flight: self.mean_in_flight,
            samples: self.samples.of_requests(),
            upgraded: 0,
            routes: self.routes,
            places: self.places,
            releases: self.releases,
            sequences: self.sequences,
            unpolled: self.unpolled,
        }
    }
}

/// Numbers of samples by what they found. All but `missed` add up to the number of sampled moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Samples {
    /// A waiting request whose stack was captured.
    pub waiting: u64,
    /// A request woken and not yet polled.
    pub ready: u64,
    /// A request being polled.
    pub running: u64,
    /// A waiting request that something else woke before its stack was captured.
    pub woken_first: u64,
    /// A waiting request that ended before its stack was captured.
    pub finished_first: u64,
    /// A pending request that kept no waker when polled.
    pub unregistered: u64,
    /// A response body that the server has not polled since its last frame: the client has not
    /// taken that frame yet.
    pub backpressured: u64,
    /// A waiting request that its executor did not poll before the profile ended.
    pub unanswered: u64,
    /// A moment with nothing in flight.
    pub idle: u64,
    /// Moments that were passed over, not sampled, because the sampler's thread got no CPU. They are
    /// not part of the sum.
    pub missed: u64,
}

impl Samples {
    /// Returns the number of samples that fell on a request.
    pub fn of_requests(&self) -> u64 {
        self.waiting
            + self.ready
            + self.running
            + self.woken_first
            + self.finished_first
            + self.unregistered
            + self.backpressured
            + self.unanswered
    }
}

/// Summary of a distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Quantiles {
    /// Number of values.
    pub count: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Largest value.
    pub max: f64,
}

impl Quantiles {
    fn micros(durations: &[Duration]) -> Self {
        let mut micros = Vec::new();
        for duration in durations {
            micros.push(duration.as_secs_f64() * 1e6);
        }
        micros.sort_by(f64::total_cmp);
        let Some(&max) = micros.last() else {
            return Quantiles::default();
        };
        // Nearest rank: the smallest value that at least so many per cent of the values do not exceed.
        let percentile = |percent: usize| micros[(micros.len() * percent).div_ceil(100) - 1];
        Quantiles {
            count: micros.len() as u64,
            mean: micros.iter().sum::<f64>() / micros.len() as f64,
            p50: percentile(50),
            p90: percentile(90),
            p99: percentile(99),
            max,
        }
    }
}

impl Profile {
    /// Returns the figures of this profile.
    pub fn summary(&self) -> Summary {
        let collected = &self.collected;
        let mut samples = Samples {
            idle: collected.idle,
            missed: collected.missed,
            ..Samples::default()
        };
        for sample in &collected.samples {
            *match sample.outcome {
                Outcome::Waiting(_) => &mut samples.waiting,
                Outcome::Ready => &mut samples.ready,
                Outcome::Running => &mut samples.running,
                Outcome::WokenFirst => &mut samples.woken_first,
                Outcome::Finished => &mut samples.finished_first,
                Outcome::Unregistered => &mut samples.unregistered,
                Outcome::Backpressured => &mut samples.backpressured,
                Outcome::Unanswered => &mut samples.unanswered,
            } += 1;
        }
        let seconds = collected.elapsed.as_secs_f64();
        let in_a_row = InARow::of(self);
        Summary {
            seconds,
            budget_per_second: self.captures_per_second,
            true_rate_per_second: collected.moments() as f64 / seconds.max(f64::MIN_POSITIVE),
            samples,
            mean_in_flight: self.mean_in_flight(),
            finished: self.finished(),
            mean_latency_ms: self.mean_latency().map(millis),
            mean_latency_interval_ms: self.latency_interval(&self.in_flight_by_run(), None),
            late_requests: collected.late,
            unseen_request_seconds: collected.late_time.as_secs_f64(),
            scheduling_delay_us: Quantiles::micros(&collected.delays),
            capture_cost_us: Quantiles::micros(&collected.costs),
            routes: self.routes(),
            places: self.shares_in(Frames::Own, &in_a_row),
            releases: self.releases(Frames::Own),
            sequences: in_a_row.sequences(),
            unpolled: self.unpolled(),
        }
    }

    /// Returns the figures by route, the route with the most requests in flight first.
    pub fn routes(&self) -> Vec<Route> {
        let collected = &self.collected;
        // Number of samples by route, and the sum of the requests in flight at them by run.
        let mut in_flight: BTreeMap<&str, (u64, Vec<f64>)> = BTreeMap::new();
        for name in collected.routes.keys() {
            in_flight.insert(name, (0, Vec::new()));
        }
        for sample in &collected.samples {
            let (samples, sums) = in_flight.entry(&sample.route).or_default();
            *samples += 1;
            let here = f64::from(sample.in_flight);
            collected.runs.add(sums, sample.moment, here);
        }
        let all = self.in_flight_by_run();
        let moments = collected.moments().max(1) as f64;
        let total = (self.mean_in_flight() * moments).max(f64::MIN_POSITIVE);
        let uncounted = RouteCount::new("".into());
        let mut routes = Vec::new();
        for (name, (samples, sums)) in in_flight {
            let count = collected.routes.get(name).unwrap_or(&uncounted);
            if samples + count.finished + count.dropped == 0 {
                continue;
            }
            let mut sum = 0.0;
            for here in &sums {
                sum += here;
            }
            let mean_in_flight = sum / moments;
            let latency = self.latency(mean_in_flight, count.finished + count.dropped);
            let longest = count.timed.longest.max(count.dropped_timed.longest);
            let finished_by_run = collected.runs.finished(Some(name));
            routes.push(Route {
                name: name.to_owned(),
                is_part: count.is_part,
                samples,
                share: sum / total,
                share_interval: share_interval(&sums, &all),
                in_flight: mean_in_flight,
                finished: count.finished,
                dropped: count.dropped,
                answers: count.answers,
                dropped_after_ms: count.dropped_timed.mean().map(millis),
                median_ms: None,
                longest_ms: (!longest.is_zero()).then(|| millis(longest)),
                standstill: standstill(&sums, &finished_by_run, &collected.runs.times()),
                latency_ms: latency.map(millis),
                latency_interval_ms: self.latency_interval(&sums, Some(name)),
                measured_latency_ms: count.timed.mean().map(millis),
            });
        }
        // The sort is stable: routes of equal share stay in the order of their names.
        routes.sort_by(|a, b| b.share.total_cmp(&a.share));
        routes
    }
}

/// Returns the longest time, in seconds, over consecutive runs in which requests were in flight and none finished.
fn standstill(in_flight: &[f64], finished: &[f64], times: &[f64]) -> f64 {
    let mut longest = 0.0_f64;
    let mut here = 0.0;
    for (run, time) in times.iter().enumerate() {
        let was_there = in_flight.get(run).is_some_and(|sum| *sum > 0.0);
        let has_finished = finished.get(run).is_some_and(|count| *count > 0.0);
        if was_there && !has_finished {
            here += time;
        } else {
            here = 0.0;
        }
        longest = longest.max(here);
    }
    longest
}

impl fmt::Debug for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Profile")
            .field("summary", &self.summary())
            .finish_non_exhaustive()
    }
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_stand_still_while_some_are_there_and_none_finishes() {
        let times = [1.0; 6];
        let some = [2.0; 6];
        assert!(standstill(&some, &[1.0; 6], &times) < 0.1);
        let seconds = standstill(&some, &[1.0, 0.0, 0.0, 0.0, 1.0, 0.0], &times);
        assert!((seconds - 3.0).abs() < 0.1, "{seconds}");
        let there = [2.0, 2.0, 0.0, 0.0, 2.0, 2.0];
        let seconds = standstill(&there, &[0.0; 6], &times);
        assert!((seconds - 2.0).abs() < 0.1, "{seconds}");
    }
}
