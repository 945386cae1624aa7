//! Numbers of tasks: whether one task woke all requests, or many did.

use std::sync::OnceLock;

/// Returns the number of the task that this thread polls.
static NUMBER: OnceLock<fn() -> Option<u64>> = OnceLock::new();

/// Sets the function that tells the tasks of the runtime apart, once for the process: it returns the number of the task
/// that its thread polls. It is called while a request is woken, under locks of others, so it may neither allocate nor
/// wait.
pub fn tell_tasks_apart(number: fn() -> Option<u64>) {
    // The first one stays.
    let _ = NUMBER.set(number);
}

/// Returns the number of the task that this thread polls, if it is known.
pub(crate) fn number() -> Option<u64> {
    NUMBER.get()?()
}
