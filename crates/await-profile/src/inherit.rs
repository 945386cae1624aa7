//! Futures of a request that are polled elsewhere.

use crate::probe::Probe;
use crate::tracked::Tracked;

/// Lets a future that is polled elsewhere be seen as part of the request that
/// makes it: one that is spawned, or put into a `FuturesUnordered` or a `JoinSet`.
///
/// Without it a request that awaits a spawned task is seen waiting for a
/// `JoinHandle`, and what the task waits for is not seen.
///
/// ```
/// # async fn example() {
/// let rows = tokio::spawn(await_profile::inherit(async {
///     tokio::time::sleep(std::time::Duration::from_millis(50)).await;
///     42
/// }));
/// let rows = rows.await;
/// # }
/// ```
///
/// A sample that falls on the request also shows one of its children, each with the
/// same probability, beneath the request's own wait as `(child)`. Outside of a wrapped
/// future, and while the profiler is off, `inherit` has no effect.
pub fn inherit<F: Future>(future: F) -> Tracked<F> {
    Tracked::new(Probe::of_child(), future)
}
