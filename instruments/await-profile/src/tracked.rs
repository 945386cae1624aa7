//! The wrapper around a request's future, and around parts that are polled elsewhere.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::probe::{Polled, Probe};
use crate::registry::Ending;

pin_project! {
    /// A future whose waits a profiler can see. Made by
    /// [`AwaitProfiler::wrap`](crate::AwaitProfiler::wrap), by the layer, and by
    /// [`inherit`](crate::inherit).
    #[must_use = "futures do nothing unless polled"]
    pub struct Tracked<F> {
        // Dropped before the future: the request leaves the registry first.
        probe: Probe,
        #[pin]
        future: F,
    }
}

impl<F> Tracked<F> {
    pub(crate) fn new(probe: Probe, future: F) -> Self {
        Tracked { probe, future }
    }

    #[cfg(feature = "tower")]
    pub(crate) fn probe(self: Pin<&mut Self>) -> &mut Probe {
        self.project().probe
    }
}

impl<F: Future> Tracked<F> {
    /// Polls the future; of its output, `ending` tells how it ended.
    #[inline]
    pub(crate) fn poll_ending(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        ending: impl FnOnce(&F::Output) -> Ending,
    ) -> Poll<F::Output> {
        let this = self.project();
        if this.probe.is_off() {
            return this.future.poll(cx);
        }
        this.probe.poll(cx, |cx| match this.future.poll(cx) {
            Poll::Ready(output) => {
                let ending = ending(&output);
                Polled::Done(Poll::Ready(output), ending)
            }
            Poll::Pending => Polled::Pending(Poll::Pending),
        })
    }
}

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
/// same probability, beneath the request's own wait: as `(child)` if the request polls it, in a
/// set; as `(spawned by this request)` if a task of its own does. Whether the handle that the
/// request waits for is that task's is not known, so do not wrap what the request does not await.
/// If there are several children, the frame says that this is one of them. Outside of a wrapped future, and while the profiler is
/// off, `inherit` has no effect.
pub fn inherit<F: Future>(future: F) -> Tracked<F> {
    Tracked::new(Probe::of_child(), future)
}

impl<F: Future> Future for Tracked<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.poll_ending(cx, |_| Ending::Finished)
    }
}

impl<F> fmt::Debug for Tracked<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracked").finish_non_exhaustive()
    }
}
