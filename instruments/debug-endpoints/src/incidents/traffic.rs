//! Requests in flight, added up between two judgements.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use await_profile::RouteTraffic;

/// Requests of one route during some time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RouteSeen {
    /// Sum of the times for which its requests were in flight, in seconds.
    pub(crate) request_seconds: f64,
    /// Requests that ended.
    pub(crate) ended: u64,
}

/// Requests during some time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Seen {
    pub(crate) routes: HashMap<Arc<str>, RouteSeen>,
    /// Smallest number of requests that were in flight at once; `None` if nobody looked.
    pub(crate) least_in_flight: Option<usize>,
}

/// Sum of the looks at the requests since the last judgement.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    seen: Seen,
    /// Requests of each route that had ended at the last look.
    ended: HashMap<Arc<str>, u64>,
}

impl Traffic {
    /// Adds a look, which stands for the time `length` before it.
    pub(crate) fn add(&mut self, routes: &[RouteTraffic], length: Duration) {
        let mut in_flight = 0;
        let mut ended = HashMap::new();
        for route in routes {
            in_flight += route.in_flight;
            let seen = self.seen.routes.entry(route.route.clone()).or_default();
            seen.request_seconds += route.in_flight as f64 * length.as_secs_f64();
            let before = self.ended.get(&route.route).copied();
            seen.ended += route.ended.saturating_sub(before.unwrap_or(route.ended));
            ended.insert(route.route.clone(), route.ended);
        }
        self.ended = ended;
        let least = self.seen.least_in_flight.unwrap_or(in_flight);
        self.seen.least_in_flight = Some(least.min(in_flight));
    }

    /// Returns the sum since the last call.
    pub(crate) fn take(&mut self) -> Seen {
        std::mem::take(&mut self.seen)
    }
}
