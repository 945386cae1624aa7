//! Observations of the instruments, as evidence for the rules.

use await_profile::{AwaitProfiler, Summary};
use diagnosis::evidence::{Requests, Runtime};

use crate::heartbeat::Heartbeat;

/// Returns the outcomes of requests and their waits.
pub(crate) fn requests(summary: Summary, profiler: &AwaitProfiler) -> Requests {
    let mut requests = summary.into_requests();
    requests.upgraded = profiler.upgraded();
    for latency in profiler.latencies() {
        let mut routes = requests.routes.iter_mut();
        if let Some(route) = routes.find(|route| *route.name == *latency.route) {
            route.median_ms = latency.p50.map(|median| median.as_secs_f64() * 1e3);
        }
    }
    requests
}

/// Returns the runtimes that were watched.
pub(crate) fn runtimes(heartbeat: &Heartbeat) -> Vec<Runtime> {
    let mut runtimes = Vec::new();
    for pulse in &heartbeat.runtimes {
        runtimes.push(Runtime {
            name: pulse.runtime.clone(),
            late_p99: f64::from(pulse.late_p99),
            unanswered: pulse.unanswered,
            held_worst: pulse.held_worst.clone(),
            busy: Some(pulse.busy),
            blocking_wait_p50: f64::from(pulse.blocking_wait_p50),
            blocking_wait_worst: f64::from(pulse.blocking_wait_worst),
            blocking_unanswered: pulse.blocking_unanswered,
        });
    }
    runtimes
}
