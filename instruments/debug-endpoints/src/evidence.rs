//! Observations of the instruments, as evidence for the rules.

use await_profile::{AwaitProfiler, Summary};
use diagnosis::evidence::{Answers, Place, Release, Requests, Route, Runtime, Sequence, Unpolled};

use crate::heartbeat::Heartbeat;

/// Returns the outcomes of requests and their waits.
pub(crate) fn requests(summary: &Summary, profiler: &AwaitProfiler) -> Requests {
    let latencies = profiler.latencies();
    let mut requests = Requests {
        in_flight: summary.mean_in_flight,
        samples: summary.samples.of_requests(),
        upgraded: profiler.upgraded(),
        ..Requests::default()
    };
    for route in &summary.routes {
        let answers = route.answers;
        let latency = latencies
            .iter()
            .find(|latency| *latency.route == *route.route);
        let median = latency.and_then(|latency| latency.p50);
        requests.routes.push(Route {
            name: route.route.clone(),
            is_part: route.is_part,
            in_flight: route.mean_in_flight,
            finished: route.finished,
            dropped: route.dropped,
            dropped_after_ms: route.dropped_after_ms,
            answers: Answers {
                upgraded: answers.upgraded,
                successful: answers.successful,
                redirected: answers.redirected,
                client_errors: answers.client_errors,
                server_errors: answers.server_errors,
                timed_out: answers.timed_out,
                refused: answers.refused,
            },
            median_ms: median.map(|median| median.as_secs_f64() * 1e3),
            longest_ms: route.longest_ms,
            standstill: route.longest_standstill,
        });
    }
    for place in &summary.places {
        let (route, frames) = split(&place.frames);
        requests.places.push(Place {
            route,
            frames,
            wait: place.wait,
            in_flight: place.mean_in_flight,
            in_a_row: place.in_a_row,
            is_asked_anew: place.is_asked_anew,
            absent: place.absent,
        });
    }
    for sequence in &summary.sequences {
        let (route, frames) = split(&sequence.frames);
        requests.sequences.push(Sequence {
            route,
            frames,
            next: split(&sequence.next).1,
            share: sequence.share,
        });
    }
    for release in &summary.releases {
        let (route, frames) = split(&release.frames);
        requests.releases.push(Release {
            route,
            frames,
            by: release.by.clone(),
            share: release.share,
            is_of_task: release.is_of_task,
            tasks: release.tasks,
            wakes: release.wakes,
            short_gap_ms: release.short_gap_ms,
        });
    }
    for unpolled in &summary.unpolled {
        requests.unpolled.push(Unpolled {
            frames: unpolled.frames.clone(),
            instead: unpolled.instead.clone(),
            woken_by: unpolled.woken_by.clone(),
            requests: unpolled.requests,
            of_requests: unpolled.of_requests,
            longest_ms: unpolled.longest_ms,
        });
    }
    requests
}

/// Returns the route, which is the first frame, and the other frames.
fn split(frames: &[String]) -> (String, Vec<String>) {
    match frames.split_first() {
        Some((route, frames)) => (route.clone(), frames.to_vec()),
        None => (String::new(), Vec::new()),
    }
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
