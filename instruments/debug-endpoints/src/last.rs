//! The last profile of a kind that was taken.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Slot for the last profile of a kind, with the moment at which it was done.
#[derive(Debug)]
pub(crate) struct Last<T>(Mutex<Option<(Instant, Arc<T>)>>);

impl<T> Default for Last<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Last<T> {
    /// Keeps `profile` in place of the one before.
    pub(crate) fn keep(&self, profile: T) -> Arc<T> {
        let kept = (Instant::now(), Arc::new(profile));
        Arc::clone(&self.slot().insert(kept).1)
    }

    /// Returns the last profile, if one was taken.
    pub(crate) fn get(&self) -> Option<Arc<T>> {
        self.slot().as_ref().map(|(_, kept)| Arc::clone(kept))
    }

    /// Returns the last profile, if it was done after `moment`.
    pub(crate) fn since(&self, moment: Instant) -> Option<Arc<T>> {
        let slot = self.slot();
        let (done, kept) = slot.as_ref()?;
        (*done >= moment).then(|| Arc::clone(kept))
    }

    fn slot(&self) -> MutexGuard<'_, Option<(Instant, Arc<T>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
