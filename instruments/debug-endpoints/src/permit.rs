//! One profile at a time in the process, of whatever kind: each would see what the others cost.

use tokio::sync::{Mutex, MutexGuard};

use crate::error::EndpointError;

/// Held while a profile is taken.
pub(crate) type Permit = MutexGuard<'static, ()>;

/// The right to take a profile, unless another one is being taken.
pub(crate) fn acquire() -> Result<Permit, EndpointError> {
    static ONE: Mutex<()> = Mutex::const_new(());
    ONE.try_lock().map_err(|_| EndpointError::Busy)
}
