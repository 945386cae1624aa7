//! Heap allocations of the whole process, for each request that it answered.
//!
//! All threads count: an allocation costs as much on another one. A build of its own, behind the
//! feature `allocations`: counting costs each allocation a few instructions, which a service that
//! makes millions of them would feel.

use std::alloc::System;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// What was allocated before the first request.
static BEFORE: OnceLock<SoFar> = OnceLock::new();
static REQUESTS: AtomicU64 = AtomicU64::new(0);

/// A request's future, counted when it is done.
pub(crate) async fn counted<F: Future>(request: F) -> F::Output {
    BEFORE.get_or_init(so_far);
    let response = request.await;
    REQUESTS.fetch_add(1, Ordering::Relaxed);
    response
}

/// What the process has allocated since it started.
#[derive(Debug)]
struct SoFar {
    times: usize,
    bytes: usize,
}

/// Averages over all requests answered: how often they allocated, and how many bytes; 0 before the
/// first.
pub(crate) fn per_request() -> (f64, f64) {
    let requests = REQUESTS.load(Ordering::Relaxed).max(1) as f64;
    let Some(before) = BEFORE.get() else {
        return (0.0, 0.0);
    };
    let now = so_far();
    let each = |now, before| (now - before) as f64 / requests;
    (each(now.times, before.times), each(now.bytes, before.bytes))
}

fn so_far() -> SoFar {
    let stats = ALLOCATOR.stats();
    SoFar {
        times: stats.allocations + stats.reallocations,
        bytes: stats.bytes_allocated,
    }
}
