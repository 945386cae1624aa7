//! Wakers that record wakes.
//!
//! While a profile is taken, futures keep such a waker. It passes wakes on to the executor and
//! records that there was one. Without that record, a sample could fall on a request that had been
//! woken before and was polled after. It would then count for the request's *next* wait.
//!
//! Every request pays for this, chosen or not. So nothing is allocated: the slot itself is such a
//! waker. It has the executor's waker of the first poll, which never changes for most requests.

use std::sync::Arc;
use std::task::{Wake, Waker};

use crate::slot::Slot;

/// Returns a waker that records wakes in `slot` and passes them on to the `executor`'s.
pub(crate) fn tracking_waker(slot: &Arc<Slot>, executor: &Waker) -> Waker {
    if slot.first_waker().will_wake(executor) {
        return Waker::from(slot.clone());
    }
    Waker::from(Arc::new(Changed {
        slot: slot.clone(),
        executor: executor.clone(),
    }))
}

impl Wake for Slot {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Before the wake: the poll that it causes must find the record.
        self.record_wake();
        self.first_waker().wake_by_ref();
    }
}

/// Waker of a request that is polled with another waker than at first. A future that kept the
/// first one goes on waking that.
struct Changed {
    slot: Arc<Slot>,
    executor: Waker,
}

impl Wake for Changed {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.slot.record_wake();
        self.executor.wake_by_ref();
    }
}
