//! Locking that ignores poisoning.

use crate::sync::{Mutex, MutexGuard};

/// Returns the data of a lock that nobody else has, even if a thread panicked while it held it.
pub(crate) fn owned<T>(mutex: Mutex<T>) -> T {
    match mutex.into_inner() {
        Ok(data) => data,
        Err(poisoned) => poisoned.into_inner(),
    }
}

/// Locks, even if another thread panicked while it held the lock: no code in this crate leaves
/// the data of a lock half changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    match mutex.lock() {
        Ok(guard) => guard,
        Err(poisoned) => poisoned.into_inner(),
    }
}
