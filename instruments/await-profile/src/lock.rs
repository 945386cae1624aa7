//! Taking a lock that a panic may have poisoned.

use std::sync::PoisonError;

use crate::sync::{Mutex, MutexGuard};

/// Locks, also after another thread panicked with the lock held: no code in this crate
/// leaves what a lock protects half changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
