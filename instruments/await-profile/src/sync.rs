//! Locks, atomics and variables of a thread: those of the standard library.
//!
//! `scheduled-tests/` compiles the files of this crate that use them with loom's instead, which tries
//! every order in which threads may take their steps. References are counted by the standard
//! library's `Arc` there too: a waker is one.

pub(crate) use std::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};
pub(crate) use std::sync::{Mutex, MutexGuard};
pub(crate) use std::thread_local;

/// Shards of the registry: so many that two threads seldom lock the same one.
pub(crate) const SHARDS: usize = 32;
/// Whether there is a stack to walk. Miri has none; it checks all the rest.
pub(crate) const HAS_STACK: bool = !cfg!(miri);
