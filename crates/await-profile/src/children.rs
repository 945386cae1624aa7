//! Futures that a request has polled elsewhere.

use crate::probe::Probe;
use crate::tracked::Tracked;
use crate::turn::Current;

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
/// When a sample falls on the request, one of its children is looked at with it,
/// each with the same probability, and drawn beneath the request's own wait
/// as `(child)`. Outside of a wrapped future, and while the profiler is off, the
/// future is left as it is.
pub fn inherit<F: Future>(future: F) -> Inherited<F> {
    match Current::get() {
        Some(parent) => Inherited::Child {
            child: Tracked::with_probe(Probe::of_child(&parent), future),
        },
        None => Inherited::Alone { future },
    }
}

pin_project_lite::pin_project! {
    /// What [`inherit`] returns.
    #[project = InheritedProjection]
    #[must_use = "futures do nothing unless polled"]
    pub enum Inherited<F> {
        #[doc(hidden)]
        Child { #[pin] child: Tracked<F> },
        #[doc(hidden)]
        Alone { #[pin] future: F },
    }
}

impl<F: Future> Future for Inherited<F> {
    type Output = F::Output;

    fn poll(
        self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<F::Output> {
        match self.project() {
            InheritedProjection::Child { child } => child.poll(cx),
            InheritedProjection::Alone { future } => future.poll(cx),
        }
    }
}

impl<F> std::fmt::Debug for Inherited<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inherited").finish_non_exhaustive()
    }
}
