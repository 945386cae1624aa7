//! Heap allocations of the whole process, for each request that it answered.
//!
//! All threads count: an allocation costs as much on another one. A build of its own, behind the
//! feature `allocations`: counting costs each allocation a few instructions, which a service that
//! makes millions of them would feel.

use std::alloc::System;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

use crate::metric::Metric;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Allocations of the process before the first request.
static BEFORE: OnceLock<SoFar> = OnceLock::new();
static REQUESTS: AtomicU64 = AtomicU64::new(0);

/// A request's future, counted when it is done.
pub(crate) async fn counted<F: Future>(request: F) -> F::Output {
    BEFORE.get_or_init(so_far);
    let response = request.await;
    REQUESTS.fetch_add(1, Ordering::Relaxed);
    response
}

/// Allocations of the process since it started: their number and their bytes.
#[derive(Debug)]
struct SoFar {
    times: usize,
    bytes: usize,
}

/// Averages over all requests answered; 0 before the first.
pub(crate) fn metrics() -> Vec<Metric> {
    let requests = REQUESTS.load(Ordering::Relaxed).max(1) as f64;
    let now = so_far();
    let before = BEFORE.get().unwrap_or(&now);
    vec![
        Metric::gauge(
            "allocations_per_request",
            "Heap allocations of the process for each answered request, since the first one",
            (now.times - before.times) as f64 / requests,
        ),
        Metric::gauge(
            "allocated_bytes_per_request",
            "Bytes of them",
            (now.bytes - before.bytes) as f64 / requests,
        ),
    ]
}

fn so_far() -> SoFar {
    let stats = ALLOCATOR.stats();
    SoFar {
        times: stats.allocations + stats.reallocations,
        bytes: stats.bytes_allocated,
    }
}
