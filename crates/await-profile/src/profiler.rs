//! The handle that a service keeps.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::label::Label;
use crate::profile::Profile;
use crate::registry::Registry;
use crate::sampler;
use crate::slot::lock;
use crate::symbols::SymbolCache;
use crate::tracked::Tracked;

/// Nothing is registered.
pub(crate) const OFF: u8 = 0;
/// Requests are registered, so that a profile finds those already in flight.
pub(crate) const ARMED: u8 = 1;
/// A profile is being taken.
pub(crate) const PROFILING: u8 = 2;

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
/// | while [`profile`](Self::profile) runs | also one allocation and a few atomic operations for each poll; the chosen ones, a capture of the call stack |
///
/// Figures are in the crate's README, and `examples/overhead.rs` measures them.
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

pub(crate) struct Shared {
    mode: AtomicU8,
    armed: AtomicBool,
    busy: AtomicBool,
    /// Number of the current or last profile; the first is 1.
    pub(crate) generation: AtomicU32,
    pub(crate) started: Mutex<Option<Instant>>,
    pub(crate) registry: Registry,
    /// Requests that began before the profile and became known during it.
    pub(crate) late: AtomicU64,
    /// The time for which they were in flight unseen.
    pub(crate) late_nanos: AtomicU64,
    pub(crate) symbols: Mutex<SymbolCache>,
}

/// How to take a profile.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProfileOptions {
    /// How long to sample. Ten seconds unless set.
    pub duration: Duration,
    /// The budget: requests looked at in a second, on average.
    /// [`DEFAULT_RATE`](Self::DEFAULT_RATE) unless set.
    pub captures_per_second: u32,
    /// Makes the choice of moments and requests repeatable, for tests.
    pub seed: Option<u64>,
    /// The crates to take for the reader's own. Unless set, own code is what was
    /// compiled from outside cargo's registry and the toolchain.
    pub own_crates: Option<Vec<String>>,
}

impl ProfileOptions {
    /// Two thousand samples in ten seconds: a share is then known to within two
    /// percentage points with 95 % confidence, for well under one per cent of a
    /// processor.
    pub const DEFAULT_RATE: u32 = 200;

    /// The default options with this duration.
    pub fn lasting(duration: Duration) -> Self {
        ProfileOptions {
            duration,
            ..ProfileOptions::default()
        }
    }

    /// Sets the budget in requests looked at a second, at least one.
    #[must_use]
    pub fn captures_per_second(mut self, rate: u32) -> Self {
        self.captures_per_second = rate.max(1);
        self
    }

    /// Makes the choice of moments and requests repeatable.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Names the crates whose frames are the reader's own, as they are spelled in
    /// paths (`my_service`).
    #[must_use]
    pub fn own_crates(mut self, crates: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.own_crates = Some(crates.into_iter().map(Into::into).collect());
        self
    }
}

impl Default for ProfileOptions {
    fn default() -> Self {
        ProfileOptions {
            duration: Duration::from_secs(10),
            captures_per_second: Self::DEFAULT_RATE,
            seed: None,
            own_crates: None,
        }
    }
}

/// Why no profile was taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// A profiler takes one profile at a time.
    #[error("this profiler is taking another profile")]
    Busy,
    /// The sampler's thread could not be started.
    #[error("could not start the sampler's thread")]
    Thread(#[source] std::io::Error),
    /// The sampler's thread panicked, which is a fault of this crate.
    #[error("the sampler panicked: please report this")]
    Sampler,
}

impl AwaitProfiler {
    /// A profiler that is off.
    #[must_use]
    pub fn new() -> Self {
        let shared = Shared {
            mode: AtomicU8::new(OFF),
            armed: AtomicBool::new(false),
            busy: AtomicBool::new(false),
            generation: AtomicU32::new(0),
            started: Mutex::new(None),
            registry: Registry::new(),
            late: AtomicU64::new(0),
            late_nanos: AtomicU64::new(0),
            symbols: Mutex::default(),
        };
        let shared: &'static Shared = Box::leak(Box::new(shared));
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

    /// Has requests that begin from now on registered, at the cost of a tenth
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
        Tracked::new(self.shared, route.into(), future)
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
        let running = Running::start(self.shared)?;
        std::thread::Builder::new()
            .name("await-profile".into())
            .spawn(move || {
                let profile = sampler::run(&running, &options, &|| sender.is_canceled());
                drop(running);
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
        let running = Running::start(self.shared)?;
        Ok(sampler::run(&running, options, &|| false))
    }
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

impl Shared {
    #[inline]
    pub(crate) fn mode(&self) -> u8 {
        self.mode.load(Ordering::Relaxed)
    }
}

/// The right to take a profile; given back when dropped, by a panic too.
pub(crate) struct Running {
    pub(crate) shared: &'static Shared,
}

impl Running {
    pub(crate) fn start(shared: &'static Shared) -> Result<Self, ProfileError> {
        if shared.busy.swap(true, Ordering::Acquire) {
            return Err(ProfileError::Busy);
        }
        Ok(Running { shared })
    }

    /// From here on polls are noted. Returns the profile's number.
    pub(crate) fn switch_on(&self) -> u32 {
        let shared = self.shared;
        shared.registry.reset_routes();
        shared.late.store(0, Ordering::Relaxed);
        shared.late_nanos.store(0, Ordering::Relaxed);
        *lock(&shared.started) = Some(Instant::now());
        let generation = shared
            .generation
            .load(Ordering::Relaxed)
            .wrapping_add(1)
            .max(1);
        shared.generation.store(generation, Ordering::Relaxed);
        shared.mode.store(PROFILING, Ordering::Release);
        generation
    }

    /// Back to off or armed.
    pub(crate) fn switch_off(&self) {
        let armed = self.shared.armed.load(Ordering::Relaxed);
        self.shared
            .mode
            .store(if armed { ARMED } else { OFF }, Ordering::Release);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.switch_off();
        self.shared.busy.store(false, Ordering::Release);
    }
}
