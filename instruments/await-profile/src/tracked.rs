//! Wrapper around a request's future, and around parts that are polled elsewhere.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::probe::{Polled, Probe};
use crate::routes::Ending;

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
    /// Polls the future. `ending` tells from its output how it ended.
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

/// Makes a future that is polled elsewhere part of the request that makes it. Use it for
/// futures that you spawn, or put into a `FuturesUnordered` or a `JoinSet`.
///
/// Without it, a request that awaits a spawned task shows a wait for a `JoinHandle`, and not
/// what the task waits for.
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
/// A sample of the request also shows one of its children, each with the same probability, beneath
/// the request's own wait. The frame is `(child)` if the request itself polls the child, in a set.
/// It is `(spawned by this request)` if a task of its own polls the child. If there are several
/// children, the frame says that this is one of them.
///
/// The profile cannot tell whether the request awaits that task's handle, so do not wrap tasks that
/// the request does not await. Outside of a wrapped future, and while the profiler is off,
/// `inherit` has no effect.
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
