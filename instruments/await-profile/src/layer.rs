//! The tower layer.

use std::fmt;
use std::marker::PhantomData;
use std::task::{Context, Poll};

use http::{Request, Response};
use tower_layer::Layer;
use tower_service::Service;

use crate::body::{AllBodies, AxumStreams, Bodies, NoBodies, ResponseFuture};
use crate::label::Label;
use crate::probe::{Polled, Probe};
use crate::profiler::AwaitProfiler;
use crate::registry::Ending;

/// Names the route of a request: the outermost frame of its stacks.
///
/// Every function from `&http::Request<B>` to a [`Label`], or to a string that makes
/// one, is such a name. It is called once for each request while the profiler is on or
/// armed. Names should be few and are cut at 128 bytes: of more than some hundreds, the least
/// used count as one route, `(other routes)`.
pub trait RouteName<B> {
    /// The name of this request's route.
    fn route_name(&self, request: &Request<B>) -> Label;
}

impl<B, F, N> RouteName<B> for F
where
    F: Fn(&Request<B>) -> N,
    N: Into<Label>,
{
    fn route_name(&self, request: &Request<B>) -> Label {
        self(request).into()
    }
}

/// Method and path, as in `GET /read`. The query is left out. Where paths have identifiers in
/// them, `MatchedRoute` or a name of your own tells routes apart.
#[derive(Clone, Copy, Debug, Default)]
pub struct MethodAndPath;

impl<B> RouteName<B> for MethodAndPath {
    fn route_name(&self, request: &Request<B>) -> Label {
        let (method, path) = (request.method().as_str(), request.uri().path());
        Label::concat(&[method, " ", path])
    }
}

/// Method and route as axum matched them, as in `GET /users/{id}`; `GET (no route)` if none
/// matched. For a layer that is added to an axum `Router` after its routes.
#[cfg(feature = "axum")]
#[derive(Clone, Copy, Debug, Default)]
pub struct MatchedRoute;

#[cfg(feature = "axum")]
impl<B> RouteName<B> for MatchedRoute {
    fn route_name(&self, request: &Request<B>) -> Label {
        let route = request.extensions().get::<axum::extract::MatchedPath>();
        let route = route.map_or("(no route)", axum::extract::MatchedPath::as_str);
        Label::concat(&[request.method().as_str(), " ", route])
    }
}

/// Service and method of a gRPC request, as in `shop.Cart/Add`. For tonic, and every other
/// service that speaks gRPC. What does not look like a method is `(no gRPC method)`.
#[derive(Clone, Copy, Debug, Default)]
pub struct GrpcMethod;

impl<B> RouteName<B> for GrpcMethod {
    fn route_name(&self, request: &Request<B>) -> Label {
        let is_word = |word: &str| {
            let is_of_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            !word.is_empty() && word.bytes().all(is_of_word)
        };
        let is_name = |text: &str| text.split('.').all(is_word);
        let path = request.uri().path().strip_prefix('/');
        match path.and_then(|path| path.split_once('/')) {
            Some((service, method)) if is_name(service) && is_name(method) => {
                Label::concat(&[service, "/", method])
            }
            _ => "(no gRPC method)".into(),
        }
    }
}

impl AwaitProfiler {
    /// A layer that wraps the future of every request of an HTTP service.
    ///
    /// That future ends when it has the head of the response. A body that is streamed may wait for
    /// long after that, so it is in flight as itself, as `body of GET /events`, and a profile tells
    /// apart whether it waits for what it sends, or for the client to take it. With the feature `axum`
    /// streamed bodies of axum are; for others see [`with_bodies`](AwaitLayer::with_bodies).
    ///
    /// ```
    /// # async fn example() {
    /// let profiler = await_profile::AwaitProfiler::new().armed();
    /// let app: axum::Router = axum::Router::new().layer(profiler.layer());
    /// # }
    /// ```
    pub fn layer(&self) -> AwaitLayer<MethodAndPath> {
        self.layer_named(MethodAndPath)
    }

    /// As [`layer`](Self::layer), with names for routes: `MatchedRoute`, [`GrpcMethod`], or
    /// any function of the request.
    ///
    /// ```
    /// # #[cfg(feature = "axum")]
    /// # fn example(profiler: await_profile::AwaitProfiler) {
    /// let layer = profiler.layer_named(await_profile::MatchedRoute);
    /// let app: axum::Router = axum::Router::new().layer(layer);
    /// # }
    /// ```
    pub fn layer_named<R>(&self, route: R) -> AwaitLayer<R> {
        AwaitLayer {
            profiler: self.clone(),
            route,
            bodies: PhantomData,
        }
    }
}

/// Made by [`AwaitProfiler::layer`].
#[derive(Clone, Debug)]
pub struct AwaitLayer<R = MethodAndPath, M = AxumStreams> {
    profiler: AwaitProfiler,
    route: R,
    bodies: PhantomData<M>,
}

impl<R, M> AwaitLayer<R, M> {
    /// Puts all bodies into [`TrackedBody`](crate::TrackedBody), in any framework. Most frameworks
    /// put that into a box, which costs a response about a tenth of a microsecond.
    #[must_use]
    pub fn with_bodies(self) -> AwaitLayer<R, AllBodies> {
        self.with()
    }

    /// Leaves all bodies alone.
    #[must_use]
    pub fn without_bodies(self) -> AwaitLayer<R, NoBodies> {
        self.with()
    }

    fn with<N>(self) -> AwaitLayer<R, N> {
        AwaitLayer {
            profiler: self.profiler,
            route: self.route,
            bodies: PhantomData,
        }
    }
}

impl<S, R: Clone, M> Layer<S> for AwaitLayer<R, M> {
    type Service = AwaitService<S, R, M>;

    fn layer(&self, service: S) -> Self::Service {
        AwaitService {
            service,
            profiler: self.profiler.clone(),
            route: self.route.clone(),
            bodies: PhantomData,
            queueing: None,
        }
    }
}

/// A service whose requests a profiler can see. Made by [`AwaitLayer`].
///
/// A service that is not ready (a concurrency limit, a buffer, a rate limit) has its callers
/// wait in `poll_ready`, before there is a request. Such a wait is in flight as a route of
/// its own, `(queueing: the service is not ready)`. A caller that gives up waiting without
/// dropping its service stays there until it calls the service or drops it.
pub struct AwaitService<S, R = MethodAndPath, M = AxumStreams> {
    service: S,
    profiler: AwaitProfiler,
    route: R,
    bodies: PhantomData<M>,
    /// While this service is not ready.
    queueing: Option<Box<Probe>>,
}

/// Where callers wait for a service that is not ready.
const QUEUEING: &str = "(queueing: the service is not ready)";

impl<S: Clone, R: Clone, M> Clone for AwaitService<S, R, M> {
    fn clone(&self) -> Self {
        AwaitService {
            service: self.service.clone(),
            profiler: self.profiler.clone(),
            route: self.route.clone(),
            bodies: PhantomData,
            queueing: None,
        }
    }
}

impl<S: fmt::Debug, R, M> fmt::Debug for AwaitService<S, R, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AwaitService")
            .field("service", &self.service)
            .field("profiler", &self.profiler)
            .finish_non_exhaustive()
    }
}

impl<S, R, M, B, D> Service<Request<B>> for AwaitService<S, R, M>
where
    S: Service<Request<B>, Response = Response<D>>,
    R: RouteName<B>,
    M: Bodies<D>,
{
    type Response = Response<M::Body>;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future, M>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        let shared = &self.profiler.shared;
        if self.queueing.is_none() {
            let ready = self.service.poll_ready(cx);
            // Most services are ready at once, and pay nothing.
            if ready.is_ready() || shared.state().is_off() {
                return ready;
            }
        }
        let new = || Box::new(Probe::of_part(shared.clone(), QUEUEING.into()));
        let probe = self.queueing.get_or_insert_with(new);
        let ready = probe.poll(cx, |cx| match self.service.poll_ready(cx) {
            Poll::Pending => Polled::Pending(Poll::Pending),
            ready @ Poll::Ready(_) => Polled::Done(ready, Ending::Finished),
        });
        if ready.is_ready() {
            self.queueing = None;
        }
        ready
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        self.queueing = None;
        // While the profiler is off no name is made.
        let route = if self.profiler.shared.state().is_off() {
            "(began before the profile)".into()
        } else {
            self.route.route_name(&request)
        };
        let future = self.profiler.wrap(route, self.service.call(request));
        ResponseFuture::new(future)
    }
}
