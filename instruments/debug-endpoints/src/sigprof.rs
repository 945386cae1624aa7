//! What the process does on SIGPROF, which profilers take for themselves.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};

/// What was done on SIGPROF before a profile; done again once this is dropped. pprof itself leaves the signal
/// ignored, and programs that the service starts would inherit that.
pub(crate) struct Disposition(libc::sigaction);

impl Disposition {
    /// What is done now, if the system says so.
    pub(crate) fn now() -> Option<Self> {
        let mut now = MaybeUninit::uninit();
        // SAFETY: without a new action it writes the present one to `now`, which has room for it.
        let failed = unsafe { libc::sigaction(libc::SIGPROF, null(), now.as_mut_ptr()) };
        // SAFETY: it was written.
        (failed == 0).then(|| Self(unsafe { now.assume_init() }))
    }
}

impl Drop for Disposition {
    /// Of a stopped profiler only: a late tick would end the process. None is pending, since ignoring a signal
    /// discards those.
    fn drop(&mut self) {
        // SAFETY: it was in force before, so its handler, if there is one, may be called.
        unsafe { libc::sigaction(libc::SIGPROF, &raw const self.0, null_mut()) };
    }
}

/// Sends SIGPROF to the calling thread, and returns when its handler has.
pub(crate) fn raise() {
    // SAFETY: it has no conditions; whoever calls it has installed a handler.
    unsafe { libc::raise(libc::SIGPROF) };
}
