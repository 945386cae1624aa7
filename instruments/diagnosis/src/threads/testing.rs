//! Stacks for tests.

use super::profile::{Stack, State};

pub(crate) const LOCK: &str = "std::sync::poison::mutex::Mutex<T>::lock";
pub(crate) const BLOCKING: &str = "tokio::runtime::blocking::pool::Inner::run";
pub(crate) const WORKER: &str = "tokio::runtime::scheduler::multi_thread::worker::run";

/// Returns samples of a thread that is blocked in a call.
pub(crate) fn in_call(samples: u64, call: &str, functions: &[&str]) -> Stack {
    Stack::of(samples, State::Blocked, functions).calling(call)
}

/// Returns samples of a thread that computes.
pub(crate) fn runs(samples: u64, functions: &[&str]) -> Stack {
    Stack::of(samples, State::Running, functions)
}
