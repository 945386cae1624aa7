//! The handle that a service keeps.

use std::fmt;
use std::net::{self, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use await_profile::{AwaitLayer, AwaitProfiler, MatchedRoute};
use axum::Router;
use axum::middleware::from_fn;
use tokio::runtime::Handle;

use crate::cpu_profiler::CpuProfiler;
use crate::endpoints::{at_the_top, under_debug};
use crate::error::{ListenError, TokenError};
use crate::guard::{Guard, Token};
use crate::listener;
use crate::metrics;
use crate::runtimes::Runtimes;
use crate::shared::{OwnMetrics, Shared};
use crate::threads::ThreadProfiler;
use crate::waits::Waits;

/// Profiles and metrics of this process, over HTTP. The [crate's page](crate) has a service with them.
///
/// Make one, within the service's runtime: heartbeat and metrics watch that. Further runtimes are added by
/// [`runtime`](Self::runtime) or, each from its own threads, by
/// [`watch_current_runtime`](Self::watch_current_runtime).
#[derive(Clone)]
#[must_use]
pub struct DebugEndpoints {
    waits: Waits,
    runtimes: Runtimes,
    token: Option<Token>,
    trusts_loopback: bool,
    metrics: Option<OwnMetrics>,
    further: Router,
    index: String,
}

impl DebugEndpoints {
    /// Endpoints without a token: a [listener](Self::listen) of theirs answers to this machine alone.
    pub fn new() -> Self {
        let runtimes = Runtimes::default();
        runtimes.add_current();
        Self {
            waits: Waits::default(),
            runtimes,
            token: None,
            trusts_loopback: false,
            metrics: None,
            further: Router::new(),
            index: String::new(),
        }
    }

    /// Asks for this token, and answers to whoever has it, from wherever: as `Authorization: Bearer
    /// TOKEN`, or as the password of any user, which `http://any:TOKEN@host/debug/…` sends. White space
    /// around it, as of the line of a file, is no part of it.
    ///
    /// It is sent as it is. Over a network that you do not trust, put TLS in front.
    ///
    /// # Errors
    ///
    /// When nothing is left of it, or when it is not visible ASCII, which no header could carry.
    pub fn token(mut self, token: impl AsRef<str>) -> Result<Self, TokenError> {
        self.token = Some(Token::new(token.as_ref())?);
        Ok(self)
    }

    /// Opens [`router`](Self::router) without a [token](Self::token) to **everything that connects from this machine**.
    ///
    /// By that you vouch that no proxy, load balancer or sidecar passes requests to the service's port: it would
    /// connect from this machine, too, and whoever asked it would get profiles, names of functions and addresses of
    /// upstreams, and could stop threads. The endpoints cannot see that for themselves: nginx since 1.29.7, `HAProxy` and
    /// every TCP proxy pass a request on without a trace in their default configuration. A deployment that puts one in
    /// front later opens the endpoints without a change of this program.
    ///
    /// It is for services that listen on loopback alone, on the machine of whoever develops them. Everywhere else, use
    /// [`listen`](Self::listen), which needs neither this nor a token.
    pub fn trust_loopback(mut self) -> Self {
        self.trusts_loopback = true;
        self
    }

    /// Watches this runtime, too: heartbeat and metrics tell of each by its name.
    pub fn runtime(self, name: &str, runtime: Handle) -> Self {
        self.runtimes.add(name, runtime);
        self
    }

    /// Watches the runtime that this is called in, too, named as the calling thread; outside of a runtime it does
    /// nothing. For services that make a runtime for each worker, such as those of actix: call it in the closure
    /// that `HttpServer::new` takes, which each worker calls.
    pub fn watch_current_runtime(&self) {
        self.runtimes.add_current();
    }

    /// Puts the service's own counters before those of runtime and process: text for Prometheus or, if
    /// it ends with `# EOF`, for `OpenMetrics`.
    pub fn metrics(
        mut self,
        text: impl Fn() -> Result<String, fmt::Error> + Send + Sync + 'static,
    ) -> Self {
        self.metrics = Some(Arc::new(text));
        self
    }

    /// Adds endpoints of the service's own for whoever may ask for these. `index` has a line for each,
    /// shown at `/debug`.
    pub fn routes(mut self, index: &str, routes: Router) -> Self {
        self.further = self.further.merge(routes);
        self.index.push_str(index);
        self
    }

    /// The profiler of what requests wait for, to wrap other futures by. It is armed.
    pub fn profiler(&self) -> AwaitProfiler {
        self.waits.profiler()
    }

    /// The layer that requests have to go through to be in await profiles. Put it on the router after
    /// the routes that it is for, so that requests are told apart by route.
    ///
    /// It names them as axum 0.8 matched them. In a service without that, all would be `(no route)`: take
    /// `debug.profiler().layer()`, which names them by method and path, or `.layer_named(GrpcMethod)`.
    pub fn layer(&self) -> AwaitLayer<MatchedRoute> {
        self.profiler().layer_named(MatchedRoute)
    }

    /// Everything under `/debug`, to be merged into an axum service, for whoever has the [token](Self::token).
    ///
    /// Without a token it refuses everybody (403), since the port is the service's own: a proxy on this machine would
    /// ask for the whole internet. [`listen`](Self::listen) needs no token, and answers while the service cannot;
    /// [`trust_loopback`](Self::trust_loopback) is for a port that no proxy passes requests to. With that, serve the app
    /// with `into_make_service_with_connect_info::<SocketAddr>()`, which tells the endpoints who asks.
    pub fn router(&self) -> Router {
        let routes = under_debug(self.shared()).merge(self.further.clone());
        let guard = self.guard(if self.trusts_loopback {
            Guard::TrustedLoopback
        } else {
            Guard::Closed
        });
        // Not the fallback: what there is no route for is the service's to answer.
        routes.route_layer(from_fn(move |request, next| {
            guard.clone().check(request, next)
        }))
    }

    /// Serves `/`, `/metrics` and everything under `/debug` until the process ends, from a thread of
    /// its own, which answers while the service cannot. Yields its address; port 0 picks a free one.
    ///
    /// # Errors
    ///
    /// When the address is not one of this machine's own alone and there is no
    /// [token](Self::token), or when it cannot be bound.
    pub fn listen(&self, address: impl ToSocketAddrs) -> Result<SocketAddr, ListenError> {
        self.serve(net::TcpListener::bind(address)?)
    }

    /// As [`listen`](Self::listen), with a listener that was bound before.
    ///
    /// # Errors
    ///
    /// When it is not on loopback and there is no [token](Self::token), or when its thread cannot be
    /// started.
    pub fn serve(&self, listener: net::TcpListener) -> Result<SocketAddr, ListenError> {
        let address = listener.local_addr()?;
        if self.token.is_none() && !address.ip().to_canonical().is_loopback() {
            return Err(ListenError::Exposed(address));
        }
        let shared = self.shared();
        let routes = under_debug(Arc::clone(&shared))
            .merge(at_the_top(shared))
            .merge(self.further.clone());
        let guard = self.guard(Guard::OwnListener);
        let routes = routes.layer(from_fn(move |request, next| {
            guard.clone().check(request, next)
        }));
        Ok(listener::serve(listener, routes, listener::READ_WITHIN)?)
    }

    fn shared(&self) -> Arc<Shared> {
        metrics::prepare();
        Arc::new(Shared {
            cpu: CpuProfiler::default(),
            threads: ThreadProfiler::default(),
            waits: self.waits.clone(),
            runtimes: self.runtimes.clone(),
            metrics: self.metrics.clone(),
            index: self.index.clone(),
        })
    }

    fn guard(&self, without_token: Guard) -> Guard {
        match &self.token {
            Some(token) => Guard::Token(token.clone()),
            None => without_token,
        }
    }
}

impl Default for DebugEndpoints {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for DebugEndpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DebugEndpoints")
            .field("profiler", &self.profiler())
            .field("has_token", &self.token.is_some())
            .finish_non_exhaustive()
    }
}
