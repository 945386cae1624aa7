//! A finished profile.

use std::collections::HashMap;
use std::time::Duration;

use ecosystem::Interval;

use crate::collected::{Collected, Outcome, Sample, StackId};
use crate::interval::interval;
use crate::options::ProfileOptions;
use crate::stack::Stack;
use crate::symbols::SymbolCache;

/// Sampled waits of the requests in flight over an interval of time.
///
/// A share is always the share of the requests in flight, averaged over time.
pub struct Profile {
    pub(crate) collected: Collected,
    /// Resolved stacks of waits, indexed by [`StackId`].
    pub(crate) stacks: Vec<Stack>,
    pub(crate) releases: Vec<Stack>,
    pub(crate) captures_per_second: u32,
}

impl Profile {
    /// Resolves the stacks of the collected samples.
    pub(crate) fn new(
        collected: Collected,
        options: &ProfileOptions,
        symbols: &mut SymbolCache,
    ) -> Self {
        let mut stacks = Vec::new();
        for stack in &collected.waits.distinct {
            stacks.push(Stack::new(&symbols.resolve_all(stack), options));
        }
        let mut releases = Vec::new();
        for stack in &collected.releases.distinct {
            releases.push(Stack::of_release(&symbols.resolve_all(stack), options));
        }
        // By stack: true if a thread of the blocking pool ended every wait there whose end was seen.
        let mut blocking: HashMap<StackId, bool> = HashMap::new();
        for sample in &collected.samples {
            if let (Outcome::Waiting(waits), Some(release)) = (&sample.outcome, sample.release)
                && let [stack] = waits.stacks[..]
            {
                let is_blocking = releases[release as usize].is_of_pool_thread();
                *blocking.entry(stack).or_insert(true) &= is_blocking;
            }
        }
        for (stack, _) in blocking.into_iter().filter(|&(_, is_blocking)| is_blocking) {
            stacks[stack as usize].of_blocking();
        }
        Profile {
            stacks,
            releases,
            captures_per_second: options.captures_per_second,
            collected,
        }
    }

    /// Returns the request-microseconds that a sample stands for: the requests in flight at its
    /// moment, times the mean time between moments.
    pub(crate) fn weight_of(&self, sample: &Sample) -> f64 {
        let moments = self.collected.moments().max(1) as f64;
        f64::from(sample.in_flight) * self.collected.elapsed.as_secs_f64() * 1e6 / moments
    }

    /// Returns the number of requests in flight, averaged over time.
    pub fn mean_in_flight(&self) -> f64 {
        let mut sum = 0.0;
        for sample in &self.collected.samples {
            sum += f64::from(sample.in_flight);
        }
        sum / self.collected.moments().max(1) as f64
    }

    /// Returns the number of requests that finished during the profile, without response bodies.
    pub fn finished(&self) -> u64 {
        let mut finished = 0;
        for route in self.collected.routes.values() {
            if !route.is_part {
                finished += route.finished;
            }
        }
        finished
    }

    /// Returns the number of requests of this route, or of its response bodies, that finished or were dropped.
    pub(crate) fn ended_of(&self, route: &str) -> u64 {
        match self.collected.routes.get(route) {
            Some(count) => count.finished + count.dropped,
            None => 0,
        }
    }

    /// Returns the number of requests that were dropped during the profile, of this route or of all.
    fn dropped(&self, route: Option<&str>) -> u64 {
        let mut dropped = 0;
        for (name, count) in &self.collected.routes {
            let is_wanted = route.map_or(!count.is_part, |route| **name == *route);
            dropped += if is_wanted { count.dropped } else { 0 };
        }
        dropped
    }

    /// Returns the mean time of a request over all routes, or None if no request ended.
    ///
    /// [Little's law] gives it: the mean number in flight divided by the number that end a second, finished or dropped.
    /// The law holds if as many requests end as begin. Unlike a mean of measured times, the
    /// result includes requests that take longer than the profile.
    ///
    /// [Little's law]: https://doi.org/10.1287/opre.9.3.383
    pub fn mean_latency(&self) -> Option<Duration> {
        self.latency(self.mean_in_flight(), self.finished() + self.dropped(None))
    }

    /// Applies Little's law to some of the requests: divides the mean number of them in flight by
    /// the rate at which they end.
    pub(crate) fn latency(&self, mean_in_flight: f64, ended: u64) -> Option<Duration> {
        // If no request ended, the quotient is no duration.
        let seconds = mean_in_flight * self.collected.elapsed.as_secs_f64() / ended as f64;
        Duration::try_from_secs_f64(seconds).ok()
    }

    /// Returns the interval of the mean time in milliseconds, for all routes or for one. `in_flight`
    /// has the sum of the requests in flight at the moments of each run.
    pub(crate) fn latency_interval(
        &self,
        in_flight: &[f64],
        route: Option<&str>,
    ) -> Option<Interval> {
        let runs = &self.collected.runs;
        // Runs know when requests finished, and not when they were dropped.
        if self.dropped(route) > 0 {
            return None;
        }
        let (moments, times, finished) = (runs.moments(), runs.times(), runs.finished(route));
        let sums = [in_flight, &moments, &times, &finished];
        interval(sums, |[in_flight, moments, time, finished]| {
            in_flight / moments * time / finished * 1e3
        })
    }

    /// Returns the sum of the requests in flight at the moments of each run.
    pub(crate) fn in_flight_by_run(&self) -> Vec<f64> {
        let mut sums = Vec::new();
        for sample in &self.collected.samples {
            let in_flight = f64::from(sample.in_flight);
            self.collected.runs.add(&mut sums, sample.moment, in_flight);
        }
        sums
    }
}

pub(crate) fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Formats a duration with three digits: `51.2 s`, `1.56 s`, `12.9 ms`, `3.20 µs`.
pub(crate) fn readable(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    let (value, unit) = if seconds >= 0.9995 {
        (seconds, "s")
    } else if seconds >= 0.999_5e-3 {
        (seconds * 1e3, "ms")
    } else {
        (seconds * 1e6, "µs")
    };
    format!("{} {unit}", ecosystem::figures::three_digits(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_three_digits_and_a_unit() {
        for (seconds, text) in [
            (51.176_9, "51.2 s"),
            (1.56, "1.56 s"),
            (0.999_9, "1.00 s"),
            (0.512, "512 ms"),
            (0.012_92, "12.9 ms"),
            (0.000_003_2, "3.20 µs"),
            (7200.0, "7200 s"),
        ] {
            assert_eq!(readable(Duration::from_secs_f64(seconds)), text);
        }
    }
}
