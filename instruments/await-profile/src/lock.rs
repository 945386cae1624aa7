//! Locking that ignores poisoning.

use std::sync::PoisonError;

use crate::sync::{Mutex, MutexGuard};

/// Locks, even if another thread panicked while it held the lock: no code in this crate leaves
/// the data of a lock half changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
