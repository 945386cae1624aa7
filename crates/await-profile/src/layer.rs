//! The tower layer.

use std::task::{Context, Poll};

use http::Request;
use tower_layer::Layer;
use tower_service::Service;

use crate::label::Label;
use crate::profiler::AwaitProfiler;
use crate::tracked::Tracked;

/// Names the route of a request: the outermost frame of its stacks.
///
/// Every function from `&http::Request<B>` to a [`Label`], or to a string that makes
/// one, is such a name. It is called once for each request while the profiler is on or
/// armed. Names should be few: after some hundreds, all others count as one route.
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

/// Method and path, as in `GET /read`. The query is left out.
#[derive(Clone, Copy, Debug, Default)]
pub struct MethodAndPath;

impl<B> RouteName<B> for MethodAndPath {
    fn route_name(&self, request: &Request<B>) -> Label {
        let (method, path) = (request.method().as_str(), request.uri().path());
        Label::concat(&[method, " ", path])
    }
}

impl AwaitProfiler {
    /// A layer that wraps the future of every request of an HTTP service.
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

    /// As [`layer`](Self::layer), with names for routes. Use it where paths have
    /// identifiers in them:
    ///
    /// ```
    /// use await_profile::Label;
    /// use axum::extract::{MatchedPath, Request};
    ///
    /// # async fn example(profiler: await_profile::AwaitProfiler) {
    /// let layer = profiler.layer_named(|request: &Request| {
    ///     let route = request.extensions().get::<MatchedPath>();
    ///     Label::new(route.map_or("(no route)", MatchedPath::as_str))
    /// });
    /// let app: axum::Router = axum::Router::new().layer(layer);
    /// # }
    /// ```
    pub fn layer_named<R>(&self, route: R) -> AwaitLayer<R> {
        AwaitLayer {
            profiler: *self,
            route,
        }
    }
}

/// Made by [`AwaitProfiler::layer`].
#[derive(Clone, Debug)]
pub struct AwaitLayer<R = MethodAndPath> {
    profiler: AwaitProfiler,
    route: R,
}

impl<S, R: Clone> Layer<S> for AwaitLayer<R> {
    type Service = AwaitService<S, R>;

    fn layer(&self, service: S) -> Self::Service {
        AwaitService {
            service,
            profiler: self.profiler,
            route: self.route.clone(),
        }
    }
}

/// A service whose requests a profiler can see. Made by [`AwaitLayer`].
#[derive(Clone, Debug)]
pub struct AwaitService<S, R = MethodAndPath> {
    service: S,
    profiler: AwaitProfiler,
    route: R,
}

impl<S, R, B> Service<Request<B>> for AwaitService<S, R>
where
    S: Service<Request<B>>,
    R: RouteName<B>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Tracked<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let route = route_of(self.profiler, &self.route, &request);
        self.profiler.wrap(route, self.service.call(request))
    }
}

/// The name of the request's route. While the profiler is off no name is made.
pub(crate) fn route_of<R: RouteName<B>, B>(
    profiler: AwaitProfiler,
    route: &R,
    request: &Request<B>,
) -> Label {
    if profiler.shared.state().is_off() {
        return "(began before the profile)".into();
    }
    route.route_name(request)
}
