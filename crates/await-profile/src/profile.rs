//! A finished profile.

use std::time::Duration;

use crate::collected::{Collected, Sample};
use crate::options::ProfileOptions;
use crate::stack::Stack;
use crate::symbols::SymbolCache;

/// What the requests in flight were waiting for, sampled over some time.
///
/// A share always means the share of the requests in flight, averaged over time.
pub struct Profile {
    pub(crate) collected: Collected,
    /// By [`StackId`](crate::collected::StackId).
    pub(crate) stacks: Vec<Stack>,
    pub(crate) captures_per_second: u32,
}

impl Profile {
    /// Resolves the stacks of what was collected.
    pub(crate) fn new(
        collected: Collected,
        options: &ProfileOptions,
        symbols: &mut SymbolCache,
    ) -> Self {
        let own_crates = options.own_crates.as_deref();
        let stacks = collected.stacks.iter().map(|stack| {
            let symbols: Vec<_> = stack
                .iter()
                .map(|&address| symbols.resolve(address))
                .collect();
            Stack::new(&symbols, own_crates)
        });
        Profile {
            stacks: stacks.collect(),
            captures_per_second: options.captures_per_second,
            collected,
        }
    }

    /// The request-microseconds that a sample stands for: the requests in flight at its
    /// moment, times the mean time between moments.
    pub(crate) fn weight_of(&self, sample: &Sample) -> f64 {
        let moments = self.collected.moments().max(1) as f64;
        f64::from(sample.in_flight) * self.collected.elapsed.as_secs_f64() * 1e6 / moments
    }

    /// Requests in flight, averaged over time.
    pub fn mean_in_flight(&self) -> f64 {
        let samples = self.collected.samples.iter();
        let sum: f64 = samples.map(|sample| f64::from(sample.in_flight)).sum();
        sum / self.collected.moments().max(1) as f64
    }

    /// Requests finished during the profile, response bodies not counted.
    pub fn finished(&self) -> u64 {
        let routes = self.collected.routes.values();
        routes.map(|route| route.finished).sum()
    }

    /// Mean time of a request by [Little's law]: the mean number in flight divided
    /// by the number finished a second. None if none finished.
    ///
    /// It holds if as many requests finish as begin, and unlike a mean of measured
    /// times it counts requests that take longer than the profile.
    ///
    /// [Little's law]: https://doi.org/10.1287/opre.9.3.383
    pub fn mean_latency(&self) -> Option<Duration> {
        self.latency(self.mean_in_flight(), self.finished())
    }

    /// Little's law for some of the requests: the mean number of them in flight over
    /// the rate at which they finish.
    pub(crate) fn latency(&self, mean_in_flight: f64, finished: u64) -> Option<Duration> {
        // No request finished: the quotient is no duration.
        let seconds = mean_in_flight * self.collected.elapsed.as_secs_f64() / finished as f64;
        Duration::try_from_secs_f64(seconds).ok()
    }
}

pub(crate) fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
