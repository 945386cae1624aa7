//! State of a profiler, which all clones of its handle share.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::ProfileError;
use crate::lock::lock;
use crate::registry::Registry;
use crate::session::Purpose;
use crate::symbols::SymbolCache;
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Mutex, Ordering};

/// Bit that is set while requests are registered, so that a profile finds those already in flight.
const ARMED: u32 = 1;
/// Bit that is set while a profile is taken.
const PROFILING: u32 = 2;
/// Bit that is set while waits are counted.
const COUNTING: u32 = 4;
/// Unit in which the state counts the times at which the tracking of polls began.
const GENERATION: u32 = 8;

/// Returns the bit that is set while samples are taken for a purpose.
fn bit(purpose: Purpose) -> u32 {
    match purpose {
        Purpose::Profile => PROFILING,
        Purpose::Counts => COUNTING,
    }
}

/// State of the profiler in one word, so that a thread that sees a profile running also sees its number.
#[derive(Clone, Copy)]
pub(crate) struct State(u32);

impl State {
    /// Returns whether nothing is registered.
    pub(crate) fn is_off(self) -> bool {
        self.0 & (ARMED | PROFILING | COUNTING) == 0
    }

    pub(crate) fn is_profiling(self) -> bool {
        self.0 & PROFILING != 0
    }

    /// Returns whether polls are tracked, for a profile or for counts.
    pub(crate) fn is_tracking(self) -> bool {
        self.0 & (PROFILING | COUNTING) != 0
    }

    /// Returns the number of the current or last tracking, or 0 if there was none.
    pub(crate) fn generation(self) -> u32 {
        self.0 / GENERATION
    }
}

pub(crate) struct Shared {
    state: AtomicU32,
    profiles: AtomicBool,
    counts: AtomicBool,
    started: Mutex<Option<Instant>>,
    pub(crate) registry: Registry,
    /// Number of requests that began before the profile, unregistered, and were registered during it.
    late: AtomicU64,
    /// Sum of the times, in nanoseconds, for which the late requests were in flight unseen.
    late_nanos: AtomicU64,
    pub(crate) symbols: Mutex<SymbolCache>,
}

impl Shared {
    /// Returns the state of a profiler that is off.
    pub(crate) fn new() -> Self {
        Shared {
            state: AtomicU32::new(0),
            profiles: AtomicBool::new(false),
            counts: AtomicBool::new(false),
            started: Mutex::new(None),
            registry: Registry::new(),
            late: AtomicU64::new(0),
            late_nanos: AtomicU64::new(0),
            symbols: Mutex::default(),
        }
    }

    /// Returns the flag that is true while samples are taken for this purpose.
    fn busy(&self, purpose: Purpose) -> &AtomicBool {
        match purpose {
            Purpose::Profile => &self.profiles,
            Purpose::Counts => &self.counts,
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

    /// Counts a request that began before the profile, and is registered only now.
    pub(crate) fn count_late(&self) {
        if let Some(started) = *lock(&self.started) {
            let nanos = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.late.fetch_add(1, Ordering::Relaxed);
            self.late_nanos.fetch_add(nanos, Ordering::Relaxed);
        }
    }

    /// Returns the number of late requests, and the time for which they were in flight unseen.
    pub(crate) fn late(&self) -> (u64, Duration) {
        let nanos = self.late_nanos.load(Ordering::Relaxed);
        (
            self.late.load(Ordering::Relaxed),
            Duration::from_nanos(nanos),
        )
    }
}

/// Right to take samples for a purpose, which one thread at a time has. Dropping it, even by a panic, ends the
/// tracking for this purpose and returns the right.
pub(crate) struct Permit {
    pub(crate) shared: Arc<Shared>,
    pub(crate) purpose: Purpose,
}

impl Permit {
    pub(crate) fn acquire(shared: &Arc<Shared>, purpose: Purpose) -> Result<Self, ProfileError> {
        if shared.busy(purpose).swap(true, Ordering::Acquire) {
            return Err(ProfileError::Busy);
        }
        let shared = shared.clone();
        Ok(Permit { shared, purpose })
    }

    /// Starts the tracking of polls, and returns its number. Polls that are tracked already go on with theirs: what was
    /// recorded of them is complete.
    pub(crate) fn switch_on(&self) -> u32 {
        let shared = &self.shared;
        if self.purpose == Purpose::Profile {
            shared.late.store(0, Ordering::Relaxed);
            shared.late_nanos.store(0, Ordering::Relaxed);
            *lock(&shared.started) = Some(Instant::now());
        }
        let state = &shared.state;
        let _ = state.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |state| {
            let numbered = if State(state).is_tracking() {
                state
            } else {
                with_next_number(state)
            };
            Some(numbered | bit(self.purpose))
        });
        shared.state().generation()
    }

    /// Stops the tracking of polls for this purpose.
    pub(crate) fn switch_off(&self) {
        let others = !bit(self.purpose);
        self.shared.state.fetch_and(others, Ordering::AcqRel);
    }
}

/// Returns the state with the next number, which skips 0.
fn with_next_number(state: u32) -> u32 {
    match state.wrapping_add(GENERATION) {
        wrapped if wrapped < GENERATION => wrapped | GENERATION,
        next => next,
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.switch_off();
        let busy = self.shared.busy(self.purpose);
        busy.store(false, Ordering::Release);
    }
}
