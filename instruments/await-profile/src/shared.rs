//! The state of a profiler, which all copies of its handle share.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::ProfileError;
use crate::lock::lock;
use crate::registry::Registry;
use crate::symbols::SymbolCache;
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Mutex, Ordering};

/// Requests are registered, so that a profile finds those already in flight.
const ARMED: u32 = 1;
/// A profile is being taken.
const PROFILING: u32 = 2;
/// The number of the current or last profile is counted in units of this.
const GENERATION: u32 = 4;

/// What the profiler does, in one word: whoever reads that a profile is being taken reads
/// which one.
#[derive(Clone, Copy)]
pub(crate) struct State(u32);

impl State {
    /// Nothing is registered.
    pub(crate) fn is_off(self) -> bool {
        self.0 & (ARMED | PROFILING) == 0
    }

    pub(crate) fn is_profiling(self) -> bool {
        self.0 & PROFILING != 0
    }

    /// The number of the current or last profile; 0 if there was none.
    pub(crate) fn generation(self) -> u32 {
        self.0 / GENERATION
    }
}

pub(crate) struct Shared {
    state: AtomicU32,
    busy: AtomicBool,
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
            state: AtomicU32::new(0),
            busy: AtomicBool::new(false),
            started: Mutex::new(None),
            registry: Registry::new(),
            late: AtomicU64::new(0),
            late_nanos: AtomicU64::new(0),
            symbols: Mutex::default(),
        }
    }

    #[inline]
    pub(crate) fn state(&self) -> State {
        State(self.state.load(Ordering::Acquire))
    }

    pub(crate) fn set_armed(&self, armed: bool) {
        if armed {
            self.state.fetch_or(ARMED, Ordering::AcqRel);
        } else {
            self.state.fetch_and(!ARMED, Ordering::AcqRel);
        }
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
    pub(crate) shared: Arc<Shared>,
}

impl Permit {
    pub(crate) fn acquire(shared: &Arc<Shared>) -> Result<Self, ProfileError> {
        if shared.busy.swap(true, Ordering::Acquire) {
            return Err(ProfileError::Busy);
        }
        let shared = shared.clone();
        Ok(Permit { shared })
    }

    /// From here on polls are tracked. Returns the profile's number.
    pub(crate) fn switch_on(&self) -> u32 {
        let shared = &self.shared;
        shared.late.store(0, Ordering::Relaxed);
        shared.late_nanos.store(0, Ordering::Relaxed);
        *lock(&shared.started) = Some(Instant::now());
        // Only the holder of the permit changes the number, which skips 0.
        let next = |state: u32| match state.wrapping_add(GENERATION) {
            wrapped if wrapped < GENERATION => wrapped | GENERATION,
            next => next,
        };
        let state = &shared.state;
        let _ = state.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |state| {
            Some(next(state) | PROFILING)
        });
        shared.state().generation()
    }

    /// Back to off or armed.
    pub(crate) fn switch_off(&self) {
        self.shared.state.fetch_and(!PROFILING, Ordering::AcqRel);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.switch_off();
        self.shared.busy.store(false, Ordering::Release);
    }
}
