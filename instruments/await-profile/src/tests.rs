//! Requests that are polled by hand, so that every step of a sample can be tested.

mod bounds;
mod counts;
mod intervals;
mod known_shares;
mod random_futures;
mod wakers;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};

use crate::AwaitProfiler;
use crate::sampler::Sampler;
use crate::session::Purpose;
use crate::shared::Permit;

/// Executor's side of a request, which counts its wakes.
#[derive(Default)]
pub(crate) struct Task(AtomicUsize);

impl Task {
    /// Returns the number of wakes since the last call.
    pub(crate) fn wakes(&self) -> usize {
        self.0.swap(0, Ordering::Relaxed)
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Clones of the wakers that futures were polled with.
type Wakers = Arc<Mutex<Vec<Waker>>>;

fn permit(profiler: &AwaitProfiler) -> Permit {
    Permit::acquire(&profiler.shared, Purpose::Profile).unwrap()
}

fn sampler(permit: &Permit, seed: u64) -> Sampler {
    Sampler::start(permit, fastrand::Rng::with_seed(seed))
}
