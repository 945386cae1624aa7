//! Locks, atomics and thread-local variables: those of the standard library.
//!
//! `tests/scheduled/` compiles the files of this crate that use them with loom's instead. Loom tries every order in
//! which threads may take their steps. `Arc` is the standard library's there too, since wakers are made of it.

pub(crate) use std::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};
pub(crate) use std::sync::{Mutex, MutexGuard};
pub(crate) use std::thread_local;

/// Number of shards of the registry, so many that two threads seldom lock the same one.
pub(crate) const SHARDS: usize = 32;
/// Flag that is false if there is no stack to walk. Miri has none; it checks all the rest.
pub(crate) const HAS_STACK: bool = !cfg!(miri);
