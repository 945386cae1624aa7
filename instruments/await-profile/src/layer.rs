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
use crate::routes::Ending;

/// Names the route of a request: the outermost frame of its stacks.
///
/// Every function from `&http::Request<B>` to a [`Label`], or to a string that makes one,
/// implements this trait. It is called once for each request while the profiler is armed or
/// takes a profile. Keep names few: beyond some hundreds, the least used ones count as one route,
/// `(other routes)`. Names are cut at 128 bytes.
pub trait RouteName<B> {
    /// Returns the name of this request's route.
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

/// Names routes by method and path, as in `GET /read`, without the query. If your paths contain
/// identifiers, use `MatchedRoute` or a name of your own.
#[derive(Clone, Copy, Debug, Default)]
pub struct MethodAndPath;

impl<B> RouteName<B> for MethodAndPath {
    fn route_name(&self, request: &Request<B>) -> Label {
        let (method, path) = (request.method().as_str(), request.uri().path());
        Label::concat(&[method, " ", path])
    }
}

/// Names routes by method and matched axum route, as in `GET /users/{id}`, or `GET (no route)` if
/// none matched. Add the layer to the axum `Router` after its routes.
#[cfg(feature = "axum")]
#[derive(Clone, Copy, Debug, Default)]
pub struct MatchedRoute;

#[cfg(feature = "axum")]
impl<B> RouteName<B> for MatchedRoute {
    fn route_name(&self, request: &Request<B>) -> Label {
        let matched = request.extensions().get::<axum::extract::MatchedPath>();
        let route = matched.map_or("(no route)", axum::extract::MatchedPath::as_str);
        Label::concat(&[request.method().as_str(), " ", route])
    }
}

/// Names routes by service and method of a gRPC request, as in `shop.Cart/Add`. It works for tonic
/// and every other gRPC service. A path that is no gRPC method is named `(no gRPC method)`.
#[derive(Clone, Copy, Debug, Default)]
pub struct GrpcMethod;

impl<B> RouteName<B> for GrpcMethod {
    fn route_name(&self, request: &Request<B>) -> Label {
        let path = request.uri().path().strip_prefix('/');
        match path.and_then(|path| path.split_once('/')) {
            Some((service, method)) if is_name(service) && is_name(method) => {
                Label::concat(&[service, "/", method])
            }
            _ => "(no gRPC method)".into(),
        }
    }
}

/// Returns whether a text is a name of a gRPC service or method: words with dots between them.
fn is_name(text: &str) -> bool {
    text.split('.').all(|word| {
        !word.is_empty()
            && word
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    })
}

impl AwaitProfiler {
    /// Returns a layer that wraps the future of every request of an HTTP service.
    ///
    /// The future ends when it has the head of the response, but a streamed body may wait for long
    /// after that. So a streamed body is in flight as a route of its own, `body of GET /events`. A profile
    /// shows whether it waits for its data, or for the client to take it. With the feature `axum`,
    /// streamed bodies of axum are tracked; for others see [`with_bodies`](AwaitLayer::with_bodies).
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

    /// Returns a layer as [`layer`](Self::layer) does, with names for routes: `MatchedRoute`,
    /// [`GrpcMethod`], or any function of the request.
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

/// A tower layer, made by [`AwaitProfiler::layer`], that wraps the future of every request.
#[derive(Clone, Debug)]
pub struct AwaitLayer<R = MethodAndPath, M = AxumStreams> {
    profiler: AwaitProfiler,
    route: R,
    bodies: PhantomData<M>,
}

impl<R, M> AwaitLayer<R, M> {
    /// Wraps all bodies in [`TrackedBody`](crate::TrackedBody), in any framework. Most frameworks
    /// box such a body, which costs about a tenth of a microsecond a response.
    #[must_use]
    pub fn with_bodies(self) -> AwaitLayer<R, AllBodies> {
        self.with()
    }

    /// Leaves all bodies unwrapped.
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
/// If a service is not ready (a concurrency limit, a buffer, a rate limit), its callers wait in
/// `poll_ready`, before there is a request. Such a wait is in flight as a route of its own,
/// `(queueing: the service is not ready)`. A caller that gives up waiting but keeps its service
/// stays in flight until it calls the service or drops it.
pub struct AwaitService<S, R = MethodAndPath, M = AxumStreams> {
    service: S,
    profiler: AwaitProfiler,
    route: R,
    bodies: PhantomData<M>,
    /// Wait of the caller while this service is not ready.
    queueing: Option<Box<Probe>>,
}

/// Route of callers that wait for a service that is not ready.
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
            // Most services are ready at once, and then the profiler costs nothing.
            if ready.is_ready() || shared.state().is_off() {
                return ready;
            }
        }
        let probe = self
            .queueing
            .get_or_insert_with(|| Box::new(Probe::of_part(Some(shared.clone()), QUEUEING.into())));
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
        // While the profiler is off, requests get no name of their own.
        let route = if self.profiler.shared.state().is_off() {
            "(began before the profile)".into()
        } else {
            self.route.route_name(&request)
        };
        let future = self.profiler.wrap(route, self.service.call(request));
        ResponseFuture::new(future)
    }
}
