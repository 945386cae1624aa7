//! Wakers that leave a note.
//!
//! They are what futures keep while a profile is taken: they pass wakes on to the
//! executor and leave a note that they happened. Without the note, a request that was
//! woken before the sampler chose it and polled after would be recorded at its *next*
//! wait, as if it had been there.
//!
//! Every request pays for this, not just the chosen ones. The slot is therefore such
//! a waker itself, so that there is nothing to allocate: it has the executor's waker
//! of the first poll, and most requests have the same one for life.

use std::sync::Arc;
use std::task::{Wake, Waker};

use crate::slot::Slot;

/// A waker that notes wakes in `slot` and passes them on to `real`.
pub(crate) fn noted_waker(slot: &Arc<Slot>, real: &Waker) -> Waker {
    if slot.first_waker().will_wake(real) {
        return Waker::from(slot.clone());
    }
    Waker::from(Arc::new(Moved {
        slot: slot.clone(),
        real: real.clone(),
    }))
}

impl Wake for Slot {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Before the wake: the poll that it causes must find the note.
        self.note_wake();
        self.first_waker().wake_by_ref();
    }
}

/// For a request that is polled with another waker than at first. Those who keep the
/// earlier one go on waking that.
struct Moved {
    slot: Arc<Slot>,
    real: Waker,
}

impl Wake for Moved {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.slot.note_wake();
        self.real.wake_by_ref();
    }
}
