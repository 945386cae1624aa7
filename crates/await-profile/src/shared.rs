//! What the copies of a profiler's handle have in common.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use crate::profiler::ProfileError;
use crate::registry::Registry;
use crate::slot::lock;
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
    pub(crate) started: Mutex<Option<Instant>>,
    pub(crate) registry: Registry,
    /// Requests that began before the profile and became known during it.
    pub(crate) late: AtomicU64,
    /// The time for which they were in flight unseen.
    pub(crate) late_nanos: AtomicU64,
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
