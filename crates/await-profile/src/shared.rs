//! The state of a profiler, which all copies of its handle share.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::error::ProfileError;
use crate::lock::lock;
use crate::registry::Registry;
use crate::symbols::SymbolCache;

/// Nothing is registered.
pub(crate) const OFF: u8 = 0;
/// Requests are registered, so that a profile finds those already in flight.
pub(crate) const ARMED: u8 = 1;
/// A profile is being taken.
pub(crate) const PROFILING: u8 = 2;

pub(crate) struct Shared {
    pub(crate) mode: AtomicU8,
    pub(crate) armed: AtomicBool,
    busy: AtomicBool,
    /// Number of the current or last profile; the first is 1.
    pub(crate) generation: AtomicU32,
    started: Mutex<Option<Instant>>,
    pub(crate) registry: Registry,
    /// Requests that began before the profile and were first polled during it.
    late: AtomicU64,
    /// The time for which those were in flight unseen.
    late_nanos: AtomicU64,
    pub(crate) symbols: Mutex<SymbolCache>,
}

impl Shared {
    /// Of a profiler that is off.
    pub(crate) fn new() -> Self {
        Shared {
            mode: AtomicU8::new(OFF),
            armed: AtomicBool::new(false),
            busy: AtomicBool::new(false),
            generation: AtomicU32::new(0),
            started: Mutex::new(None),
            registry: Registry::new(),
            late: AtomicU64::new(0),
            late_nanos: AtomicU64::new(0),
            symbols: Mutex::default(),
        }
    }

    #[inline]
    pub(crate) fn mode(&self) -> u8 {
        self.mode.load(Ordering::Relaxed)
    }

    /// Counts a request that began before the profile and is polled for the first time.
    pub(crate) fn count_late(&self) {
        if let Some(started) = *lock(&self.started) {
            let nanos = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.late.fetch_add(1, Ordering::Relaxed);
            self.late_nanos.fetch_add(nanos, Ordering::Relaxed);
        }
    }

    /// How many there were, and the time for which they were in flight unseen.
    pub(crate) fn late(&self) -> (u64, Duration) {
        let nanos = self.late_nanos.load(Ordering::Relaxed);
        (
            self.late.load(Ordering::Relaxed),
            Duration::from_nanos(nanos),
        )
    }
}

/// The right to take a profile, which one thread at a time has. Dropping it, also by a
/// panic, switches profiling off and gives the right back.
pub(crate) struct Permit {
    pub(crate) shared: &'static Shared,
}

impl Permit {
    pub(crate) fn acquire(shared: &'static Shared) -> Result<Self, ProfileError> {
        if shared.busy.swap(true, Ordering::Acquire) {
            return Err(ProfileError::Busy);
        }
        Ok(Permit { shared })
    }

    /// From here on polls are tracked. Returns the profile's number.
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

impl Drop for Permit {
    fn drop(&mut self) {
        self.switch_off();
        self.shared.busy.store(false, Ordering::Release);
    }
}
