//! Taking a lock that a panic may have poisoned.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, also after another thread panicked with the lock held: no code in this crate
/// leaves what a lock protects half changed.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
