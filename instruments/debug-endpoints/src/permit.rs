//! One profile of a kind at a time in the process, and a heap profile by dhat beside no other.

use tokio::sync::{Mutex, MutexGuard};

use crate::error::EndpointError;

/// Held while a profile is taken.
pub(crate) type Permit = MutexGuard<'static, ()>;

static CPU: Mutex<()> = Mutex::const_new(());
static AWAIT: Mutex<()> = Mutex::const_new(());
#[allow(dead_code)] // Not every build has it.
static THREADS: Mutex<()> = Mutex::const_new(());

/// The right to do what `one_at_a_time` is for, unless another `what` is at it.
pub(crate) fn take(
    one_at_a_time: &'static Mutex<()>,
    what: &'static str,
) -> Result<Permit, EndpointError> {
    one_at_a_time
        .try_lock()
        .map_err(|_| EndpointError::Busy(what))
}

/// The right to take a CPU profile, unless another one is being taken.
pub(crate) fn cpu() -> Result<Permit, EndpointError> {
    take(&CPU, "CPU profile")
}

/// The right to take an await profile, unless another one is being taken.
pub(crate) fn waits() -> Result<Permit, EndpointError> {
    take(&AWAIT, "await profile")
}

/// The right to stop threads for their stacks, unless another such profile is being taken.
#[allow(dead_code)]
pub(crate) fn threads() -> Result<Permit, EndpointError> {
    take(&THREADS, "profile of threads")
}

/// The right to have the allocator record its callers, while nobody looks names up: each waits for a lock of the
/// other's.
#[cfg(feature = "heap")]
pub(crate) fn alone() -> Result<[Permit; 3], EndpointError> {
    Ok([cpu()?, waits()?, threads()?])
}
