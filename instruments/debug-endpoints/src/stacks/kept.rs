//! Lines that allocate memory which stays: a sample of what is allocated during a look, less what is freed meanwhile.
//!
//! A service makes [`WatchedAllocator`] its global allocator, in one line. While nobody looks, each allocation costs one
//! load of a flag. Jemalloc's own samples, behind the feature `jemalloc`, need another allocator and an environment variable.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Mean number of bytes between two allocations that are sampled, as jemalloc and Go have it.
const INTERVAL: u64 = 512 << 10;

/// Most frames of a stack.
const MOST_FRAMES: usize = 64;

/// Most allocations that are known at once: some 40 MB of stacks would be all of them.
const MOST_KNOWN: usize = 1 << 16;

/// Counters by which most frees are known not to be of a sampled allocation.
const COUNTERS: usize = 1 << 14;

/// True during a look.
static IS_ON: AtomicBool = AtomicBool::new(false);

/// True once this allocator has allocated anything.
static IS_IN_USE: AtomicBool = AtomicBool::new(false);

/// Numbers of sampled allocations by their addresses.
static SAMPLED: [AtomicU8; COUNTERS] = [const { AtomicU8::new(0) }; COUNTERS];

/// Sampled allocations that were not freed, by their addresses.
static KNOWN: Mutex<Option<HashMap<usize, Allocation>>> = Mutex::new(None);

thread_local! {
    /// Bytes that this thread allocates before the next sample; `u64::MAX` before its first allocation.
    static LEFT: Cell<u64> = const { Cell::new(u64::MAX) };
    /// True while this thread takes a sample, which allocates, too.
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// A sampled allocation.
struct Allocation {
    at: Instant,
    /// Bytes for which it stands.
    bytes: u64,
    stack: Vec<usize>,
}

/// Allocator that passes everything on to another one, and lets a look name the lines whose memory stays:
/// `#[global_allocator] static ALLOCATOR: WatchedAllocator = WatchedAllocator::system();`.
#[derive(Clone, Copy, Debug)]
pub struct WatchedAllocator<A = System>(A);

impl WatchedAllocator {
    /// Watches the allocator of the system.
    pub const fn system() -> Self {
        Self(System)
    }
}

impl<A> WatchedAllocator<A> {
    /// Watches another allocator, such as jemalloc.
    pub const fn new(allocator: A) -> Self {
        Self(allocator)
    }
}

// SAFETY: all memory is that of the other allocator, and is passed on unchanged.
unsafe impl<A: GlobalAlloc> GlobalAlloc for WatchedAllocator<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the conditions of the other allocator, which are the same.
        let pointer = unsafe { self.0.alloc(layout) };
        if IS_ON.load(Ordering::Relaxed) {
            allocated(pointer as usize, layout.size());
        }
        pointer
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        let pointer = unsafe { self.0.alloc_zeroed(layout) };
        if IS_ON.load(Ordering::Relaxed) {
            allocated(pointer as usize, layout.size());
        }
        pointer
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let is_on = IS_ON.load(Ordering::Relaxed);
        if is_on {
            // Before another thread can be given this address.
            freed(pointer as usize);
        }
        // SAFETY: as above.
        let pointer = unsafe { self.0.realloc(pointer, layout, size) };
        if is_on {
            allocated(pointer as usize, size);
        }
        pointer
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if IS_ON.load(Ordering::Relaxed) {
            freed(pointer as usize);
        }
        // SAFETY: as above.
        unsafe { self.0.dealloc(pointer, layout) }
    }
}

fn allocated(address: usize, size: usize) {
    // A thread that ends has no such numbers any more.
    let is_due = LEFT.try_with(|left| {
        let size = size as u64;
        let before = match left.get() {
            u64::MAX => until_next(address),
            before => before,
        };
        if size < before {
            left.set(before - size);
            return false;
        }
        left.set(until_next(address));
        true
    });
    if address != 0 && is_due == Ok(true) {
        sample(address, INTERVAL.max(size as u64));
    }
}

/// Returns the bytes until the next sample: a number with the mean [`INTERVAL`], since an even step meets the same line of a loop
/// again and again.
fn until_next(seed: usize) -> u64 {
    let mixed = (seed as u64 ^ clock()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    1 + (mixed >> 32) % (2 * INTERVAL)
}

/// Returns a number that changes from sample to sample.
fn clock() -> u64 {
    static COUNT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    COUNT.fetch_add(0x2545_f491_4f6c_dd1d, Ordering::Relaxed)
}

/// Runs `work`, which may allocate and free, unless this thread is in such a work already.
fn unless_inside(work: impl FnOnce()) {
    if IS_INSIDE.try_with(|inside| inside.replace(true)) == Ok(false) {
        work();
        let _ = IS_INSIDE.try_with(|inside| inside.set(false));
    }
}

#[cold]
fn sample(address: usize, bytes: u64) {
    unless_inside(|| {
        let mut stack = Vec::with_capacity(MOST_FRAMES);
        backtrace::trace(|frame| {
            // The address after a call may be of the next function.
            stack.push((frame.ip() as usize).saturating_sub(1));
            stack.len() < MOST_FRAMES
        });
        let allocation = Allocation {
            at: Instant::now(),
            bytes,
            stack,
        };
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.as_mut().filter(|known| known.len() < MOST_KNOWN);
        if known.is_some_and(|known| known.insert(address, allocation).is_none()) {
            let counter = counter(address);
            // One that is full stays full: it only costs time.
            let _ = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| {
                count.checked_add(1)
            });
        }
    });
}

fn counter(address: usize) -> &'static AtomicU8 {
    // Addresses are multiples of 16.
    let mixed = (address as u64 >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    &SAMPLED[usize::try_from(mixed >> 32).unwrap_or_default() % COUNTERS]
}

fn freed(address: usize) {
    if counter(address).load(Ordering::Relaxed) > 0 {
        forget(address);
    }
}

#[cold]
fn forget(address: usize) {
    unless_inside(|| {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let removed = known.as_mut().and_then(|known| known.remove(&address));
        if removed.is_some() {
            let counter = counter(address);
            let _ =
                counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| match count {
                    u8::MAX => None,
                    count => count.checked_sub(1),
                });
        }
        // Freeing its stack needs no lock.
        drop(known);
    });
}

/// Samples allocations until it is dropped.
pub(crate) struct Watch {
    began: Instant,
}

/// Memory that was allocated early in a watch and not freed.
pub(crate) struct Stayed {
    /// Bytes for which the sample stands.
    pub(crate) bytes: u64,
    /// Addresses of the code, the innermost first.
    pub(crate) stack: Vec<usize>,
}

impl Watch {
    /// Begins to sample; `None` if the service has another allocator, or somebody else watches.
    pub(crate) fn begin() -> Option<Self> {
        if !is_in_use() {
            return None;
        }
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_some() {
            return None;
        }
        *known = Some(HashMap::new());
        drop(known);
        IS_ON.store(true, Ordering::Relaxed);
        Some(Self {
            began: Instant::now(),
        })
    }

    /// Returns what was allocated in the first half of the time and was not freed since: what is younger may only be in use.
    pub(crate) fn stayed(self) -> Vec<Stayed> {
        let half = self.began + self.began.elapsed() / 2;
        let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(self);
        let mut stayed = Vec::new();
        for allocation in known.unwrap_or_default().into_values() {
            if allocation.at <= half {
                stayed.push(Stayed {
                    bytes: allocation.bytes,
                    stack: allocation.stack,
                });
            }
        }
        stayed
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        IS_ON.store(false, Ordering::Relaxed);
        let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner).take();
        for counter in &SAMPLED {
            counter.store(0, Ordering::Relaxed);
        }
        drop(known);
    }
}

/// Returns whether this allocator is the one of the service: an allocation has to be sampled.
fn is_in_use() -> bool {
    if IS_IN_USE.load(Ordering::Relaxed) {
        return true;
    }
    let before = LEFT.get();
    IS_ON.store(true, Ordering::Relaxed);
    LEFT.set(u64::MAX - 1);
    drop(std::hint::black_box(Vec::<u8>::with_capacity(64)));
    let is_in_use = LEFT.get() != u64::MAX - 1;
    IS_ON.store(false, Ordering::Relaxed);
    LEFT.set(before);
    IS_IN_USE.store(is_in_use, Ordering::Relaxed);
    is_in_use
}

#[cfg(all(test, not(feature = "heap")))]
mod tests {
    use super::*;

    #[global_allocator]
    static ALLOCATOR: WatchedAllocator = WatchedAllocator::system();

    #[inline(never)]
    fn keeps(kept: &mut Vec<Vec<u8>>) {
        for _ in 0..400 {
            kept.push(std::hint::black_box(vec![1; 100_000]));
            drop(std::hint::black_box(vec![2_u8; 100_000]));
        }
    }

    #[test]
    fn what_stays_is_told_with_its_stack_and_what_is_freed_is_not() {
        let watch = Watch::begin().expect("this is the allocator");
        assert!(Watch::begin().is_none(), "one at a time");
        let mut kept = Vec::new();
        keeps(&mut kept);
        std::thread::sleep(watch.began.elapsed() + std::time::Duration::from_millis(50));
        let stayed = watch.stayed();
        let mut bytes = 0;
        for one in &stayed {
            let is_here = one.stack.iter().any(|address| {
                let mut is_here = false;
                backtrace::resolve((address + 1) as *mut _, |symbol| {
                    let name = symbol.name().map(|name| name.to_string());
                    is_here |= name.is_some_and(|name| name.contains("kept::tests::keeps"));
                });
                is_here
            });
            bytes += if is_here { one.bytes } else { 0 };
        }
        // 40 MB stay, of which 80 samples are expected: a quarter of them is no chance.
        assert!(
            (10 << 20..160 << 20).contains(&bytes),
            "{bytes} of {}",
            stayed.len()
        );
        drop(kept);
        let watch = Watch::begin().expect("the last one is over");
        drop(std::hint::black_box(vec![3_u8; 8 << 20]));
        assert!(watch.stayed().iter().all(|one| one.bytes < 8 << 20));
    }
}
