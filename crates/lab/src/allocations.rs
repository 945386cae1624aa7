//! Heap allocations while requests are handled, counted by the thread that makes them.
//!
//! A build of its own, behind the feature `allocations`: counting costs each allocation a few
//! instructions, which a service that makes millions of them would feel.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static REQUESTS: AtomicU64 = AtomicU64::new(0);

/// The future of a request; what its polls allocate is counted when it is done.
pub(crate) struct Counted<F> {
    future: Pin<Box<F>>,
    allocations: u64,
}

impl<F: Future> Counted<F> {
    pub(crate) fn new(future: F) -> Self {
        Self {
            // Not counted: the counting itself must not count.
            future: Box::pin(future),
            allocations: 0,
        }
    }
}

impl<F: Future> Future for Counted<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let mut polled = Poll::Pending;
        let counted = allocation_counter::measure(|| polled = this.future.as_mut().poll(cx));
        this.allocations += counted.count_total;
        if polled.is_ready() {
            ALLOCATIONS.fetch_add(this.allocations, Ordering::Relaxed);
            REQUESTS.fetch_add(1, Ordering::Relaxed);
        }
        polled
    }
}

/// The average over all requests answered; 0 before the first.
pub(crate) fn per_request() -> f64 {
    let requests = REQUESTS.load(Ordering::Relaxed).max(1);
    ALLOCATIONS.load(Ordering::Relaxed) as f64 / requests as f64
}
