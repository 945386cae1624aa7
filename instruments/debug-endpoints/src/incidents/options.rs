//! Conditions under which an incident is recorded.

use std::time::Duration;

/// Shortest time that [`Incidents::late`] takes.
const SHORTEST: Duration = Duration::from_millis(10);

/// Incidents to record, for [`DebugEndpoints::record_incidents`](crate::DebugEndpoints::record_incidents).
///
/// ```
/// use std::time::Duration;
/// use debug_endpoints::{DebugEndpoints, Incidents};
///
/// let incidents = Incidents::new().p99_limit(Duration::from_millis(500));
/// let debug = DebugEndpoints::new().record_incidents(incidents);
/// # let _ = debug;
/// ```
///
/// # What is an incident
///
/// | kind | it begins when | it needs |
/// | --- | --- | --- |
/// | `late` | a worker of a watched runtime does not yield for 50 ms | |
/// | `latency` | the 99th percentile of a route's latency is over [your limit](Self::p99_limit) | the limit, and the [layer](crate::DebugEndpoints::layer) |
/// | `blocking_pool` | a job waits for a thread of the blocking pool for a second | |
/// | `descriptors` | 80 % of the file descriptors are open | Linux |
/// | `memory` | 90 % of the memory that a limit allows is used | Linux |
/// | `threads` | the system starts no further thread | |
///
/// # The limit for latencies
///
/// Without [`p99_limit`](Self::p99_limit) no latency is judged. With it, the watching thread compares the limit with each
/// route once a second. A `latency` incident begins when over 1 % of the route's requests took longer than the limit:
///
/// - the 99th percentile of those that were answered in the last 30 to 60 seconds is over the limit (it is known within
///   7 %); or
/// - more than 1 % have been in flight for longer than the limit. So requests that hang count before they end.
///
/// Only timed requests count, and a route needs **100 of them** in that time: the 99th percentile of fewer is the slowest
/// request alone. Every sixteenth request is timed, so a route is judged from about 50 requests per second on. The incident
/// ends when the route is back within the limit.
///
/// # When other programs have the CPU
///
/// Lateness does not include the time in which threads that run requests waited for a CPU, or in which the watching
/// thread itself was late. If that time explains all of the lateness, no incident is recorded, and the metric
/// `process_incidents_total{kind="no_cpu"}` counts the event. But if the process itself used half of the CPUs or more,
/// it caused that wait, which then counts.
///
/// # Bounds
///
/// At most one incident a minute is recorded. The last ten are kept, each with at most 64 KiB of stacks. If a kind comes
/// again and again, the pause before the next record doubles: 1, 2, 4, … 60 minutes. An incident that is still going on at
/// the end of the pause is recorded then. The metric counts all incidents.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Incidents {
    pub(crate) late: Duration,
    pub(crate) p99_limit: Option<Duration>,
    pub(crate) stacks: bool,
}

impl Incidents {
    /// Returns the incidents of the table above, without a limit for latencies.
    pub fn new() -> Self {
        Self {
            late: Duration::from_millis(50),
            p99_limit: None,
            stacks: true,
        }
    }

    /// Sets the time for which a worker may go on without yielding. Less than 10 ms counts as 10 ms.
    ///
    /// The watching thread looks at least once per `late`, at least every 50 ms, and more often after a worker has not
    /// yielded between two looks. So an incident begins up to 3 × `late` after the worker stopped yielding, and a
    /// shorter stall may go unseen.
    pub fn late(mut self, late: Duration) -> Self {
        self.late = late.max(SHORTEST);
        self
    }

    /// Sets the limit for the 99th percentile of each route's latency. There is none by default, and then no incident of
    /// the kind `latency`. The limit is the same for all routes: take the latency at which somebody is to be woken.
    pub fn p99_limit(mut self, limit: Duration) -> Self {
        self.p99_limit = Some(limit);
        self
    }

    /// Takes no stacks of threads, so that no thread is stopped. Incidents of the kind `late` then do not say where the
    /// worker was.
    pub fn without_stacks(mut self) -> Self {
        self.stacks = false;
        self
    }
}

impl Default for Incidents {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_watched_is_replaced_by_the_nearest_that_can() {
        assert_eq!(Incidents::new().late(Duration::ZERO).late, SHORTEST);
    }
}
