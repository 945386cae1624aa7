//! The last profile of a kind that was taken.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Kept until the next one.
#[derive(Debug)]
pub(crate) struct Last<T>(Mutex<Option<Arc<T>>>);

impl<T> Default for Last<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Last<T> {
    pub(crate) fn keep(&self, profile: T) -> Arc<T> {
        Arc::clone(self.slot().insert(Arc::new(profile)))
    }

    /// It, if any was taken.
    pub(crate) fn get(&self) -> Option<Arc<T>> {
        self.slot().clone()
    }

    fn slot(&self) -> MutexGuard<'_, Option<Arc<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
