//! Response bodies, which go on after the request's future has ended.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use crate::label::Label;
use crate::layer::{MethodAndPath, RouteName, route_of};
use crate::probe::{Polled, Probe};
use crate::profiler::AwaitProfiler;
use crate::shared::Shared;

impl AwaitProfiler {
    /// A layer that wraps the bodies of responses.
    ///
    /// A request's future ends when it has the head of the response. A body that is
    /// streamed may wait for long after that. With this layer a body is in flight as
    /// itself, under the route's name with `(response body)` added. A profile tells apart
    /// whether it waits for what it sends, or for the client to take it.
    ///
    /// Add it along with [`layer`](Self::layer) where bodies are streams.
    pub fn body_layer(&self) -> BodyLayer<MethodAndPath> {
        self.body_layer_named(MethodAndPath)
    }

    /// As [`body_layer`](Self::body_layer), with names for routes.
    pub fn body_layer_named<R>(&self, route: R) -> BodyLayer<R> {
        BodyLayer {
            profiler: self.clone(),
            route,
        }
    }
}

/// Made by [`AwaitProfiler::body_layer`].
#[derive(Clone, Debug)]
pub struct BodyLayer<R = MethodAndPath> {
    profiler: AwaitProfiler,
    route: R,
}

impl<S, R: Clone> Layer<S> for BodyLayer<R> {
    type Service = BodyService<S, R>;

    fn layer(&self, service: S) -> Self::Service {
        BodyService {
            service,
            profiler: self.profiler.clone(),
            route: self.route.clone(),
        }
    }
}

/// A service whose response bodies a profiler can see. Made by [`BodyLayer`].
#[derive(Clone, Debug)]
pub struct BodyService<S, R = MethodAndPath> {
    service: S,
    profiler: AwaitProfiler,
    route: R,
}

impl<S, R, B, D> Service<Request<B>> for BodyService<S, R>
where
    S: Service<Request<B>, Response = Response<D>>,
    R: RouteName<B>,
{
    type Response = Response<TrackedBody<D>>;
    type Error = S::Error;
    type Future = BodyFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let route = route_of(&self.profiler, &self.route, &request);
        BodyFuture {
            route,
            shared: self.profiler.shared.clone(),
            future: self.service.call(request),
        }
    }
}

pin_project! {
    /// Puts the response's body into a [`TrackedBody`].
    #[must_use = "futures do nothing unless polled"]
    pub struct BodyFuture<F> {
        route: Label,
        shared: Arc<Shared>,
        #[pin]
        future: F,
    }
}

impl<F, D, E> Future for BodyFuture<F>
where
    F: Future<Output = Result<Response<D>, E>>,
{
    type Output = Result<Response<TrackedBody<D>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let response = ready!(this.future.poll(cx))?;
        let route = std::mem::replace(this.route, Label::from(""));
        let probe = Probe::of_part(this.shared.clone(), route, " (response body)");
        Poll::Ready(Ok(response.map(|body| TrackedBody { probe, body })))
    }
}

impl<F> fmt::Debug for BodyFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BodyFuture").finish_non_exhaustive()
    }
}

pin_project! {
    /// A response body whose waits a profiler can see. Made by [`BodyLayer`].
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
        // A body that has ended, as most have from the start, waits for nothing.
        if this.probe.is_off() || this.body.is_end_stream() {
            return this.body.poll_frame(cx);
        }
        let mut body = this.body;
        this.probe
            .poll(cx, |cx| match body.as_mut().poll_frame(cx) {
                Poll::Pending => Polled::Pending(Poll::Pending),
                // A server does not poll again after the last frame.
                Poll::Ready(Some(Ok(frame))) if body.is_end_stream() => {
                    Polled::Done(Poll::Ready(Some(Ok(frame))))
                }
                Poll::Ready(Some(Ok(frame))) => Polled::Yielded(Poll::Ready(Some(Ok(frame)))),
                over @ Poll::Ready(_) => Polled::Done(over),
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
