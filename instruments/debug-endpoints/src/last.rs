//! The last profile of a kind that was taken.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Slot for the last profile of a kind.
#[derive(Debug)]
pub(crate) struct Last<T>(Mutex<Option<Arc<T>>>);

impl<T> Default for Last<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Last<T> {
    /// Keeps `profile` in place of the one before.
    pub(crate) fn keep(&self, profile: T) -> Arc<T> {
        Arc::clone(self.slot().insert(Arc::new(profile)))
    }

    /// Returns the last profile, if one was taken.
    pub(crate) fn get(&self) -> Option<Arc<T>> {
        self.slot().clone()
    }

    fn slot(&self) -> MutexGuard<'_, Option<Arc<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
