//! Conditions under which an incident is recorded.

use std::time::Duration;

/// Shortest time that [`Incidents::late`] takes.
const SHORTEST: Duration = Duration::from_millis(10);

/// Smallest factor that [`Incidents::times_usual`] takes.
const SMALLEST_FACTOR: f64 = 1.5;

/// Incidents to record, for [`DebugEndpoints::record_incidents`](crate::DebugEndpoints::record_incidents).
///
/// ```
/// use std::time::Duration;
/// use debug_endpoints::{DebugEndpoints, Incidents};
///
/// let incidents = Incidents::new().late(Duration::from_millis(50));
/// let debug = DebugEndpoints::new().record_incidents(incidents);
/// # let _ = debug;
/// ```
///
/// # What is an incident
///
/// | kind | it begins when | it needs |
/// | --- | --- | --- |
/// | `late` | a worker of a watched runtime does not yield for 50 ms | |
/// | `in_flight` | more requests than usual are in flight for two seconds | the [layer](crate::DebugEndpoints::layer) |
/// | `latency` | the mean latency of a route is higher than usual | the layer |
/// | `blocking_pool` | a job waits for a thread of the blocking pool for a second | |
/// | `descriptors` | 80 % of the file descriptors are open | Linux |
/// | `memory` | 90 % of the memory that a limit allows is used | Linux |
/// | `threads` | the system starts no further thread | |
///
/// # The usual range
///
/// The usual range follows from a *usual high*, which is learned separately for the requests in flight and for the
/// latency of each route:
///
/// 1. For ten minutes with requests ([`learning_for`](Self::learning_for)), the usual high is the highest value so far,
///    and nothing is judged. Each start of the process learns anew.
/// 2. Then a value is out of range if it is over five times the usual high ([`times_usual`](Self::times_usual)) **and**
///    exceeds the usual high by a floor: 50 requests in flight ([`in_flight_over`](Self::in_flight_over)) or 50 ms of latency
///    ([`latency_over`](Self::latency_over)).
/// 3. A higher value raises the usual high slowly, each minute by at most 30 % of (usual high + floor), so that one
///    burst does not become usual. While values are lower, it halves in twelve hours.
///
/// The value of requests in flight is the smallest number seen within a second. So a batch that is answered within a
/// second does not count.
///
/// The value of latency is the mean over five seconds, or over a longer time until 30 requests have ended. If that takes
/// more than a minute, nothing is judged. The mean is the mean number in flight divided by the number that ended per second
/// (Little's law). So requests that hang count before they end.
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
    pub(crate) times_usual: f64,
    pub(crate) latency_over: Duration,
    pub(crate) in_flight_over: usize,
    pub(crate) learning: Duration,
    pub(crate) stacks: bool,
}

impl Incidents {
    /// Returns the incidents of the table above.
    pub fn new() -> Self {
        Self {
            late: Duration::from_millis(50),
            times_usual: 5.0,
            latency_over: Duration::from_millis(50),
            in_flight_over: 50,
            learning: Duration::from_secs(600),
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

    /// Sets the factor by which a value may exceed the usual high. A factor below 1.5, or NaN, counts as 1.5.
    pub fn times_usual(mut self, times: f64) -> Self {
        self.times_usual = times.max(SMALLEST_FACTOR);
        self
    }

    /// Sets the floor for latency: an incident's mean latency exceeds the usual high by at least this.
    pub fn latency_over(mut self, latency: Duration) -> Self {
        self.latency_over = latency;
        self
    }

    /// Sets the floor for requests in flight: an incident's number exceeds the usual high by at least this.
    pub fn in_flight_over(mut self, requests: usize) -> Self {
        self.in_flight_over = requests;
        self
    }

    /// Sets the time for which the usual range is learned before anything is judged by it.
    pub fn learning_for(mut self, time: Duration) -> Self {
        self.learning = time;
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
        let incidents = Incidents::new().late(Duration::ZERO).times_usual(f64::NAN);
        assert_eq!(incidents.late, SHORTEST);
        assert!((incidents.times_usual - SMALLEST_FACTOR).abs() < f64::EPSILON);
    }
}
