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

/// Allocations before the first request.
static BEFORE: OnceLock<usize> = OnceLock::new();
static REQUESTS: AtomicU64 = AtomicU64::new(0);

/// A request's future, counted when it is done.
pub(crate) async fn counted<F: Future>(request: F) -> F::Output {
    BEFORE.get_or_init(so_far);
    let response = request.await;
    REQUESTS.fetch_add(1, Ordering::Relaxed);
    response
}

/// The average over all requests answered; 0 before the first.
pub(crate) fn per_request() -> f64 {
    let requests = REQUESTS.load(Ordering::Relaxed).max(1);
    let since = BEFORE.get().map_or(0, |before| so_far() - before);
    since as f64 / requests as f64
}

fn so_far() -> usize {
    let stats = ALLOCATOR.stats();
    stats.allocations + stats.reallocations
}
