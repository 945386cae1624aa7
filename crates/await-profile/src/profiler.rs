//! The handle that a service keeps.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use crate::error::ProfileError;
use crate::label::Label;
use crate::lock::lock;
use crate::options::ProfileOptions;
use crate::probe::Probe;
use crate::profile::Profile;
use crate::sampler::collect;
use crate::shared::{ARMED, OFF, Permit, Shared};
use crate::tracked::Tracked;

/// Takes await profiles of the futures that it wraps.
///
/// It is a handle: copies mean the same profiler. One for each service is usual.
/// A profiler is never freed (its registry takes some kilobytes), so that what it
/// wraps can refer to it without counting references for every request.
///
/// # What it costs
///
/// | state | every request pays for |
/// | --- | --- |
/// | off, as [`new`](Self::new) leaves it | reading one flag for each poll |
/// | [armed](Self::arm) | also entering and leaving the registry |
/// | while [`profile`](Self::profile) runs | also one atomic operation for each wake, and another reference to count; the chosen ones, a capture of the call stack |
///
/// Figures are in the crate's README. `examples/instructions.rs` and
/// `examples/overhead.rs` measure them.
///
/// # Why arm it
///
/// A request can only be chosen once the registry knows it, and a profiler that
/// is off does not note requests. One that began before the profile is then
/// first known when it is polled again. Of a service in which every request hangs
/// such a profile shows nothing. Armed, a profiler sees them all.
#[derive(Clone, Copy)]
pub struct AwaitProfiler {
    pub(crate) shared: &'static Shared,
}

/// All there are, so that tools which look for leaks find them to be meant.
static PROFILERS: Mutex<Vec<&'static Shared>> = Mutex::new(Vec::new());

impl AwaitProfiler {
    /// A profiler that is off.
    #[must_use]
    pub fn new() -> Self {
        let shared: &'static Shared = Box::leak(Box::new(Shared::new()));
        lock(&PROFILERS).push(shared);
        AwaitProfiler { shared }
    }

    /// The same profiler, armed: requests that begin from now on are known to a
    /// profile that is started later.
    #[must_use = "armed() returns the profiler; arm() changes it in place"]
    pub fn armed(self) -> Self {
        self.arm();
        self
    }

    /// Has requests that begin from now on registered, at the cost of one or two tenths
    /// of a microsecond each.
    pub fn arm(&self) {
        self.set_armed(true);
    }

    /// Goes back to reading a flag.
    pub fn disarm(&self) {
        self.set_armed(false);
    }

    fn set_armed(self, armed: bool) {
        self.shared.armed.store(armed, Ordering::Relaxed);
        // A profile in progress goes to the new state when it ends.
        let (from, to) = if armed { (OFF, ARMED) } else { (ARMED, OFF) };
        let _ = self
            .shared
            .mode
            .compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// The number of requests (and other wrapped futures) in flight that the
    /// profiler knows of; none while it is off.
    pub fn in_flight(&self) -> usize {
        self.shared.registry.len()
    }

    /// Wraps a future of any kind; `route` is the outermost frame of its stacks.
    ///
    /// Inside a future that is wrapped already this does nothing more: the
    /// outermost wrapper is the one that counts.
    pub fn wrap<F: Future>(&self, route: impl Into<Label>, future: F) -> Tracked<F> {
        Tracked::new(Probe::new(self.shared, route.into()), future)
    }

    /// Takes a profile. Everything happens on a thread of the sampler's own, so
    /// this may be awaited on any executor, a stalled one included. Dropping the
    /// future ends the profile early.
    ///
    /// # Errors
    ///
    /// If another profile is being taken, or no thread can be started.
    pub async fn profile(&self, options: ProfileOptions) -> Result<Profile, ProfileError> {
        let (sender, receiver) = futures_channel::oneshot::channel();
        let permit = Permit::acquire(self.shared)?;
        std::thread::Builder::new()
            .name("await-profile".into())
            .spawn(move || {
                let profile = take(&permit, &options, &|| sender.is_canceled());
                drop(permit);
                let _ = sender.send(profile);
            })
            .map_err(ProfileError::Thread)?;
        receiver.await.map_err(|_| ProfileError::Sampler)
    }

    /// As [`profile`](Self::profile), on the calling thread, which it blocks.
    ///
    /// # Errors
    ///
    /// If another profile is being taken.
    pub fn profile_blocking(&self, options: &ProfileOptions) -> Result<Profile, ProfileError> {
        let permit = Permit::acquire(self.shared)?;
        Ok(take(&permit, options, &|| false))
    }
}

/// Takes a profile, from switching on to resolving names.
fn take(permit: &Permit, options: &ProfileOptions, cancelled: &dyn Fn() -> bool) -> Profile {
    let collected = collect(permit, options, cancelled);
    Profile::new(collected, options, &mut lock(&permit.shared.symbols))
}

impl Default for AwaitProfiler {
    fn default() -> Self {
        AwaitProfiler::new()
    }
}

impl fmt::Debug for AwaitProfiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = match self.shared.mode() {
            OFF => "off",
            ARMED => "armed",
            _ => "profiling",
        };
        f.debug_struct("AwaitProfiler")
            .field("mode", &mode)
            .field("in_flight", &self.in_flight())
            .finish()
    }
}
