//! What services on axum 0.8 have in addition: a layer that knows routes, the endpoints on the service's own port, and
//! the service's own endpoints on the listener.

use std::sync::Arc;

use await_profile::{AwaitLayer, MatchedRoute};
use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::any;
use hyper::body::Incoming;
use tower_service::Service;

use super::DebugEndpoints;
use crate::answer::Answer;
use crate::endpoints;
use crate::guard::Guard;
use crate::shared::Shared;

/// Settings for axum.
#[derive(Debug, Clone, Default)]
pub(super) struct OnAxum {
    trusts_loopback: bool,
    /// Endpoints that the service adds.
    further: Router,
}

impl OnAxum {
    /// Answers a request for a path that none of our endpoints has.
    pub(super) async fn answer(&self, request: http::Request<Incoming>) -> Response {
        match self.further.clone().call(request).await {
            Ok(answer) => answer,
            Err(never) => match never {},
        }
    }
}

/// Answers a request to the router.
async fn ask(shared: &Arc<Shared>, path: &str, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let answer = endpoints::answer(shared, path, &parts).await;
    answer.map_or_else(Response::default, Answer::into_response)
}

async fn guarded(guard: Guard, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    match guard.refusal(&parts) {
        Some(refusal) => refusal.into_response(),
        None => next.run(Request::from_parts(parts, body)).await,
    }
}

/// These are there with the feature `axum`.
impl DebugEndpoints {
    /// Opens [`router`](Self::router) without a [token](Self::token) to **everything that connects from this machine**.
    ///
    /// By calling this, you vouch that no proxy, load balancer or sidecar passes requests to the service's port. Such a
    /// proxy connects from this machine, too. So all of its clients would get profiles, names of functions and
    /// addresses of upstreams, and could stop threads for moments ([ptrace](crate#costs)).
    ///
    /// The endpoints cannot detect every proxy: nginx since 1.29.7, `HAProxy` and every TCP proxy pass a request on without
    /// a trace in their default configuration. If a deployment puts one in front later, the endpoints are open without a
    /// change of this program.
    ///
    /// Use it for services that listen only on loopback, on a developer's machine. Everywhere else, use
    /// [`listen`](Self::listen), which needs neither this nor a token.
    pub fn trust_loopback(mut self) -> Self {
        self.axum.trusts_loopback = true;
        self
    }

    /// Adds the service's own endpoints, with the same access rules. `index` is added to the list at `/debug`: one line of
    /// text for each endpoint.
    pub fn routes(mut self, index: &str, routes: Router) -> Self {
        self.axum.further = self.axum.further.merge(routes);
        self.index.push_str(index);
        self
    }

    /// Returns the layer that puts requests into await profiles. Add it to the router after its routes, so that each
    /// request has its route's name.
    ///
    /// It names requests by the route that axum 0.8 matched. In a service without axum 0.8, all would be `(no route)`:
    /// use `debug.profiler().layer()`, which names them by method and path, or `.layer_named(GrpcMethod)`.
    pub fn layer(&self) -> AwaitLayer<MatchedRoute> {
        self.profiler().layer_named(MatchedRoute)
    }

    /// Returns a router of everything under `/debug`, to merge into an axum service. It answers requests that have the
    /// [token](Self::token).
    ///
    /// Without a token it refuses everybody (403): the port is the service's own, and a proxy on this machine may pass on
    /// requests from the whole internet. [`listen`](Self::listen) needs no token, and answers while the service cannot.
    /// [`trust_loopback`](Self::trust_loopback) is for a port that no proxy passes requests to. With it, serve the app
    /// with `into_make_service_with_connect_info::<SocketAddr>()`, which gives the endpoints the client's address.
    pub fn router(&self) -> Router {
        let shared = self.shared();
        let guard = self.guard(if self.axum.trusts_loopback {
            Guard::TrustedLoopback
        } else {
            Guard::Closed
        });
        let mut router = self.axum.further.clone();
        for path in endpoints::PATHS {
            let shared = Arc::clone(&shared);
            router = router.route(
                path,
                any(async move |request| ask(&shared, path, request).await),
            );
        }
        // The guard leaves the fallback alone: the service answers paths that have no route.
        router.route_layer(from_fn(move |request, next| {
            guarded(guard.clone(), request, next)
        }))
    }
}
