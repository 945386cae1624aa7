//! Evidence for the tests of rules.

use std::sync::Arc;

use ecosystem::{Frame, Wait, waits};

use crate::evidence::{Evidence, Place, Requests, Route, Runtime};
use crate::finding::Finding;
use crate::threads::{CpuSamples, CpuThread, Stack, Thread, ThreadProfile};

/// Returns the well-known wait of a frame.
fn wait(leaf: &str) -> Option<Wait> {
    for row in waits() {
        if row.wait.what == leaf {
            return Some(row.wait);
        }
        for place in &row.places {
            if place.len() == 1 && ecosystem::is_within(leaf, place.iter().copied()) {
                return Some(row.wait);
            }
        }
    }
    None
}

/// Returns a place where requests of a route are in these frames.
pub(crate) fn place(route: &str, frames: &[&str], in_flight: f64) -> Place {
    Place {
        route: route.to_owned(),
        frames: self::frames(frames),
        wait: frames.last().and_then(|leaf| wait(leaf)),
        in_flight,
        ..Place::default()
    }
}

/// Returns frames with these texts.
pub(crate) fn frames(texts: &[&str]) -> Vec<Frame> {
    let mut frames = Vec::new();
    for text in texts {
        let Ok(frame) = text.parse();
        frames.push(frame);
    }
    frames
}

/// Returns a route with this many requests in flight and finished.
pub(crate) fn route(name: &str, in_flight: f64, finished: u64) -> Route {
    Route {
        name: name.to_owned(),
        in_flight,
        finished,
        ..Route::default()
    }
}

/// Returns evidence of ten seconds of requests on two CPUs.
pub(crate) fn evidence(routes: &[Route], places: &[Place]) -> Evidence {
    Evidence {
        seconds: 10.0,
        cpus: 2,
        requests: Some(Requests {
            in_flight: routes.iter().map(|route| route.in_flight).sum(),
            routes: routes.to_vec(),
            places: places.to_vec(),
            ..Requests::default()
        }),
        ..Evidence::default()
    }
}

/// Returns evidence of threads in 100 moments, one of which did not yield for `held` seconds.
pub(crate) fn of_threads(threads: Vec<Thread>, held: f64) -> Evidence {
    let runtime = Runtime {
        held_worst: vec![held],
        ..Runtime::default()
    };
    Evidence {
        seconds: 10.0,
        cpus: 2,
        threads: Some(Arc::new(ThreadProfile::of(100, threads))),
        runtimes: vec![runtime],
        ..Evidence::default()
    }
}

/// Returns samples of the CPU time of a worker, 10 ms each.
pub(crate) fn cpu_samples(stacks: Vec<Stack>) -> CpuSamples {
    CpuSamples {
        period_s: 0.01,
        threads: vec![CpuThread {
            is_runtime: true,
            began_requests: true,
            stacks,
            holds: Vec::new(),
        }],
    }
}

/// Checks that a rule finds nothing just below a threshold, and something at it.
pub(crate) fn both_sides(
    rule: fn(&Evidence) -> Vec<Finding>,
    threshold: f64,
    evidence: impl Fn(f64) -> Evidence,
) {
    let below = rule(&evidence(threshold * 0.99));
    assert!(below.is_empty(), "below {threshold}: {below:?}");
    let at = rule(&evidence(threshold * 1.001));
    assert!(!at.is_empty(), "nothing at {threshold}");
}
