//! Size of the live memory: allocated and not freed, by the allocator's own count.

#[cfg(all(
    target_os = "linux",
    target_env = "gnu",
    not(target_feature = "crt-static")
))]
mod glibc;
#[cfg(not(all(
    target_os = "linux",
    target_env = "gnu",
    not(target_feature = "crt-static")
)))]
#[path = "allocator/no_glibc.rs"]
mod glibc;

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use cpu_time::ThreadTime;

/// Longest time that a count may take, for more of them to follow. Threads that allocate wait for that long.
const LONGEST_COUNT: Duration = Duration::from_millis(10);

/// Longest time that giving pages back may take. It comes once after a profile, and tens of megabytes take longer than a
/// count.
const LONGEST_TRIM: Duration = Duration::from_millis(50);

/// Free pieces that glibc surely walks through in a millisecond. Each may be a cache miss.
const PIECES_IN_MS: u64 = 10_000;

/// Time for which the allocator is left alone after a question took longer, or would have.
const REST: Duration = Duration::from_secs(600);

/// End of the time for which glibc is left alone.
static RESTS_UNTIL: Mutex<Option<Instant>> = Mutex::new(None);

/// Returns whether glibc is left alone, because a question took it too long a short time ago, or would have.
pub(crate) fn rests() -> bool {
    let until = *RESTS_UNTIL.lock().unwrap_or_else(PoisonError::into_inner);
    until.is_some_and(|until| Instant::now() < until)
}

/// Asks glibc, unless it is left alone. Leaves it alone if it has so many free pieces that the answer may take longer than
/// `most`, or if the answer does take longer. The time is that of the calling thread on a CPU, which does not count other
/// programs.
fn ask<T>(most: Duration, question: impl FnOnce() -> Option<T>) -> Option<T> {
    if rests() {
        return None;
    }
    let most_pieces = u64::try_from(most.as_millis()).unwrap_or(u64::MAX) * PIECES_IN_MS;
    let is_crowded = glibc::free_pieces() > most_pieces;
    let began = ThreadTime::now();
    let answer = if is_crowded { None } else { question() };
    if is_crowded || began.elapsed() > most {
        let mut until = RESTS_UNTIL.lock().unwrap_or_else(PoisonError::into_inner);
        *until = Some(Instant::now() + REST);
    }
    answer
}

/// Allocator that counts live memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
#[allow(dead_code)] // Not every build has both.
pub(crate) enum Allocator {
    Glibc,
    Jemalloc,
}

impl Allocator {
    /// Returns the allocator of this process's Rust code, if it is one of these. It is found out once: at the start,
    /// while the heap is small.
    pub(crate) fn of_this_process() -> Option<Self> {
        static FOUND: OnceLock<Option<Allocator>> = OnceLock::new();
        if let Some(found) = FOUND.get() {
            return *found;
        }
        let mut all = [Self::Jemalloc, Self::Glibc].into_iter();
        let found = all.find(|one| one.counts_what_rust_allocates());
        // Nothing is found out while glibc is left alone.
        if found.is_none() && rests() {
            return None;
        }
        *FOUND.get_or_init(|| found)
    }

    fn counts_what_rust_allocates(self) -> bool {
        const SIZE: usize = 1 << 20;
        let Some(before) = self.live() else {
            return false;
        };
        let some = std::hint::black_box(Vec::<u8>::with_capacity(SIZE));
        let after = self.live().unwrap_or_default();
        drop(some);
        // Other threads allocate and free at the same time, so half of the size is enough.
        after > before + SIZE as u64 / 2
    }

    /// Gives unused pages back to the system. Glibc holds the lock of an arena while it does so, and is left alone if that
    /// took long.
    pub(crate) fn give_back(self) {
        if self == Self::Glibc {
            ask(LONGEST_TRIM, || {
                glibc::trim();
                Some(())
            });
        }
    }

    /// Returns the number of live bytes. Glibc holds the lock of each arena while it walks through the arena's free
    /// pieces: some tenths of a second for a million of them. If there are that many, it is left alone, and the answer is
    /// `None`.
    pub(crate) fn live(self) -> Option<u64> {
        match self {
            Self::Glibc => ask(LONGEST_COUNT, glibc::live),
            Self::Jemalloc => jemalloc(),
        }
    }
}

#[cfg(all(target_os = "linux", feature = "jemalloc"))]
fn jemalloc() -> Option<u64> {
    // Jemalloc updates its figures only when the epoch advances.
    tikv_jemalloc_ctl::epoch::advance().ok()?;
    tikv_jemalloc_ctl::stats::allocated::read()
        .ok()
        .map(|live| live as u64)
}

#[cfg(not(all(target_os = "linux", feature = "jemalloc")))]
fn jemalloc() -> Option<u64> {
    None
}
