//! Wakers that leave a note.

use std::sync::{Arc, OnceLock};
use std::task::{Context, Wake, Waker};

use crate::clone_hook::{Observer, poll_hooked};
use crate::slot::Slot;

/// The waker that futures keep while a profile is taken: passes wakes on to the
/// executor and leaves a note that they happened.
///
/// Without the note, a request that was woken before the sampler chose it and
/// polled after would be recorded at its *next* wait, as if it had been there.
struct NotedWaker {
    slot: Arc<Slot>,
    real: Waker,
}

impl Wake for NotedWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Before the wake: the poll that it causes must find the note.
        self.slot.note_wake();
        self.real.wake_by_ref();
    }
}

/// Makes such a waker when one is asked for. Many requests never do: they end in
/// their first poll.
pub(crate) struct NotedSource<'a> {
    slot: &'a Arc<Slot>,
    real: &'a Waker,
    /// A lock because another thread may clone the waker too.
    noted: OnceLock<Waker>,
}

impl<'a> NotedSource<'a> {
    /// `noted` is what an earlier source made for the same executor's waker.
    pub(crate) fn new(slot: &'a Arc<Slot>, real: &'a Waker, noted: Option<Waker>) -> Self {
        NotedSource {
            slot,
            real,
            noted: noted.map_or_else(OnceLock::new, OnceLock::from),
        }
    }

    pub(crate) fn waker(&self) -> &Waker {
        self.noted.get_or_init(|| {
            Waker::from(Arc::new(NotedWaker {
                slot: self.slot.clone(),
                real: self.real.clone(),
            }))
        })
    }

    /// Polls with the waker, which is made if it is cloned or woken.
    pub(crate) fn poll<R>(&self, poll: impl FnOnce(&mut Context<'_>) -> R) -> R {
        match self.noted.get() {
            // The same as in earlier polls, so that leaves need not clone it anew.
            Some(waker) => poll(&mut Context::from_waker(waker)),
            None => poll_hooked(self, poll),
        }
    }

    pub(crate) fn into_noted(self) -> Option<Waker> {
        self.noted.into_inner()
    }
}

impl Observer for NotedSource<'_> {
    fn clone_waker(&self) -> Waker {
        self.waker().clone()
    }

    fn wake(&self) {
        self.waker().wake_by_ref();
    }
}
