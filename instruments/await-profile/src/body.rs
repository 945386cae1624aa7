//! Response bodies, which may go on after the request's future has ended.

use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::Response;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::probe::{Polled, Probe};
use crate::routes::Ending;
use crate::tracked::Tracked;

/// Treatment of bodies of the type `D`. Only the types for the second parameter of
/// [`AwaitLayer`](crate::AwaitLayer) implement it.
pub trait Bodies<D> {
    /// Type of the bodies that the service returns.
    type Body;

    #[doc(hidden)]
    fn track(response: Response<D>, request: Ended<'_>) -> Response<Self::Body>;
}

/// A request whose response has been made.
#[doc(hidden)]
pub struct Ended<'a>(&'a mut Probe);

impl Ended<'_> {
    fn track<D>(self, body: D) -> TrackedBody<D> {
        let probe = self.0.take_for_body();
        TrackedBody { probe, body }
    }
}

/// Leaves all bodies unwrapped.
#[derive(Clone, Copy, Debug)]
pub struct NoBodies;

impl<D> Bodies<D> for NoBodies {
    type Body = D;

    #[inline]
    fn track(response: Response<D>, _: Ended<'_>) -> Response<D> {
        response
    }
}

/// Wraps all bodies in [`TrackedBody`].
#[derive(Clone, Copy, Debug)]
pub struct AllBodies;

impl<D> Bodies<D> for AllBodies {
    type Body = TrackedBody<D>;

    fn track(response: Response<D>, request: Ended<'_>) -> Response<TrackedBody<D>> {
        response.map(|body| request.track(body))
    }
}

/// Tracks axum bodies that are streams, with the feature `axum`. Their type stays the same.
///
/// With another type each response would cost a box, since frameworks box bodies that are not of their type.
#[derive(Clone, Copy, Debug)]
pub struct AxumStreams;

impl<D: 'static> Bodies<D> for AxumStreams {
    type Body = D;

    #[cfg(not(feature = "axum"))]
    #[inline]
    fn track(response: Response<D>, _: Ended<'_>) -> Response<D> {
        response
    }

    #[cfg(feature = "axum")]
    #[inline]
    fn track(mut response: Response<D>, request: Ended<'_>) -> Response<D> {
        /// Size in bytes up to which a body of known length is not tracked. It is in memory, or as good as,
        /// and waits for nothing.
        const MIN_BYTES: u64 = 64 * 1024;
        let known: &mut dyn std::any::Any = response.body_mut();
        if let Some(body) = known.downcast_mut::<axum::body::Body>() {
            match body.size_hint().exact() {
                Some(bytes) if bytes <= MIN_BYTES => {}
                _ => {
                    let stream = request.track(std::mem::take(body));
                    *body = axum::body::Body::new(stream);
                }
            }
        }
        response
    }
}

pin_project! {
    /// Future of a request, which also wraps the response's body. Made by
    /// [`AwaitService`](crate::AwaitService).
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<F, M> {
        #[pin]
        request: Tracked<F>,
        bodies: PhantomData<M>,
    }
}

impl<F, M> ResponseFuture<F, M> {
    pub(crate) fn new(request: Tracked<F>) -> Self {
        let bodies = PhantomData;
        ResponseFuture { request, bodies }
    }
}

impl<F, D, E, M> Future for ResponseFuture<F, M>
where
    F: Future<Output = Result<Response<D>, E>>,
    M: Bodies<D>,
{
    type Output = Result<Response<M::Body>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut request = self.project().request;
        let polled = request.as_mut().poll_ending(cx, |result| match result {
            Ok(response) => Ending::Answered(response.status().as_u16()),
            Err(_) => Ending::Finished,
        });
        Poll::Ready(Ok(M::track(ready!(polled)?, Ended(request.probe()))))
    }
}

impl<F, M> fmt::Debug for ResponseFuture<F, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}

pin_project! {
    /// A response body whose waits a profiler can see. Made by
    /// [`AwaitLayer`](crate::AwaitLayer).
    pub struct TrackedBody<D> {
        probe: Probe,
        #[pin]
        body: D,
    }
}

impl<D: Body> Body for TrackedBody<D> {
    type Data = D::Data;
    type Error = D::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<D::Data>, D::Error>>> {
        let this = self.project();
        // A body that has ended waits for nothing. An empty one has ended from the start.
        if this.probe.is_off() || this.body.is_end_stream() {
            return this.body.poll_frame(cx);
        }
        let mut body = this.body;
        this.probe
            .poll(cx, |cx| match body.as_mut().poll_frame(cx) {
                Poll::Pending => Polled::Pending(Poll::Pending),
                // A server does not poll again after the last frame.
                Poll::Ready(Some(Ok(frame))) if body.is_end_stream() => {
                    Polled::Done(Poll::Ready(Some(Ok(frame))), Ending::Finished)
                }
                Poll::Ready(Some(Ok(frame))) => Polled::Yielded(Poll::Ready(Some(Ok(frame)))),
                over @ Poll::Ready(_) => Polled::Done(over, Ending::Finished),
            })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<D> fmt::Debug for TrackedBody<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrackedBody").finish_non_exhaustive()
    }
}
