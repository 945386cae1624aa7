//! Latencies of routes, against the limit that the service sets.

use std::sync::Arc;
use std::time::Duration;

use await_profile::AwaitProfiler;

/// Fewest timed requests of a route that are judged: the 99th percentile of fewer is the slowest request alone.
pub(crate) const FEWEST: u64 = 100;

/// Timed requests of one route.
#[derive(Clone, Debug)]
pub(crate) struct RouteSeen {
    pub(crate) name: Arc<str>,
    /// Requests that were answered in the last 30 to 60 seconds, and their 99th percentile.
    pub(crate) answered: u64,
    pub(crate) p99: Option<Duration>,
    /// Requests in flight that have already taken longer than the limit.
    pub(crate) slow_in_flight: u64,
}

/// Returns what the profiler knows of each route. `limit` is that of the 99th percentile.
pub(crate) fn look(profiler: &AwaitProfiler, limit: Duration) -> Vec<RouteSeen> {
    let mut in_flight = profiler.in_flight_longer_than(limit);
    let mut seen = Vec::new();
    for latency in profiler.latencies() {
        seen.push(RouteSeen {
            slow_in_flight: in_flight.remove(&latency.route).unwrap_or_default(),
            name: latency.route,
            answered: latency.recent,
            p99: latency.p99,
        });
    }
    for (name, slow_in_flight) in in_flight {
        seen.push(RouteSeen {
            name,
            answered: 0,
            p99: None,
            slow_in_flight,
        });
    }
    seen
}

impl RouteSeen {
    /// Returns whether over 1 % of its requests took longer than `limit`, if there are enough of them to tell. If that
    /// `goes_on`, any number is enough: requests that hang are not answered, so they become few.
    pub(crate) fn is_over(&self, limit: Duration, goes_on: bool) -> bool {
        let all = self.answered + self.slow_in_flight;
        let is_enough = all >= FEWEST || goes_on;
        let is_slow = self.p99.is_some_and(|p99| p99 > limit);
        is_enough && (is_slow || self.slow_in_flight * 100 > all)
    }

    /// Returns a sentence on what is over the limit.
    pub(crate) fn says(&self, limit: Duration) -> String {
        let (name, limit_ms) = (&self.name, milliseconds(limit));
        match self.p99 {
            Some(p99) if p99 > limit => format!(
                "The p99 of {name} was {} over the last minute; its limit is {limit_ms}.",
                milliseconds(p99)
            ),
            _ => format!(
                "{} of {} timed requests of {name} have been in flight for longer than {limit_ms}, the limit of its p99.",
                self.slow_in_flight,
                self.answered + self.slow_in_flight
            ),
        }
    }
}

/// Formats a time in milliseconds, with a decimal if it is short.
fn milliseconds(time: Duration) -> String {
    let ms = time.as_secs_f64() * 1e3;
    let decimals = usize::from(ms < 10.0);
    format!("{ms:.decimals$} ms")
}
