//! Permits: one profile of a kind at a time in the process, and a heap profile by dhat beside no other.

use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard};
use tokio::time::timeout;

use crate::error::EndpointError;

/// Permit for a profile, held while it is taken.
pub(crate) type Permit = MutexGuard<'static, ()>;

static CPU: Mutex<()> = Mutex::const_new(());
static AWAIT: Mutex<()> = Mutex::const_new(());
static THREADS: Mutex<()> = Mutex::const_new(());
static NAMES: Mutex<()> = Mutex::const_new(());

/// Returns the permit, or an error that names the profile that is being taken.
pub(crate) fn take(
    one_at_a_time: &'static Mutex<()>,
    what: &'static str,
) -> Result<Permit, EndpointError> {
    one_at_a_time
        .try_lock()
        .map_err(|_| EndpointError::Busy(what))
}

/// Returns the permit once it is free, or after `patience` an error that names the profile that is being taken.
async fn take_within(
    patience: Duration,
    one_at_a_time: &'static Mutex<()>,
    what: &'static str,
) -> Result<Permit, EndpointError> {
    timeout(patience, one_at_a_time.lock())
        .await
        .map_err(|_| EndpointError::Busy(what))
}

/// Returns the permit for a CPU profile.
pub(crate) fn cpu() -> Result<Permit, EndpointError> {
    take(&CPU, "CPU profile")
}

/// Returns the permit for an await profile.
pub(crate) fn waits() -> Result<Permit, EndpointError> {
    take(&AWAIT, "await profile")
}

/// Returns the permit for an await profile once it is free, or an error after `patience`.
pub(crate) async fn waits_within(patience: Duration) -> Result<Permit, EndpointError> {
    take_within(patience, &AWAIT, "await profile").await
}

/// Returns the permit to stop threads once it is free, or an error after `patience`.
pub(crate) async fn threads_within(patience: Duration) -> Result<Permit, EndpointError> {
    take_within(patience, &THREADS, "profile of threads").await
}

/// Returns the permit to stop threads for their stacks.
pub(crate) fn threads() -> Result<Permit, EndpointError> {
    take(&THREADS, "profile of threads")
}

/// Returns the permit to look up names for counts of waits, beside any profile but one of the heap by dhat.
pub(crate) fn names() -> Result<Permit, EndpointError> {
    take(&NAMES, "look-up of names for counts of waits")
}

/// Returns all permits, for an allocator that records its callers. It and a thread that looks names up would wait for
/// each other's locks.
#[cfg(feature = "heap")]
pub(crate) fn alone() -> Result<[Permit; 4], EndpointError> {
    Ok([cpu()?, waits()?, threads()?, names()?])
}
