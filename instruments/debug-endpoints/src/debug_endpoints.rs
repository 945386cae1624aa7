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
use crate::incidents::options::Incidents;
use crate::incidents::recorder::Recorder;
use crate::incidents::watcher;
use crate::listener;
use crate::metrics;
use crate::runtimes::Runtimes;
use crate::shared::{OwnMetrics, Shared};
use crate::threads::ThreadProfiler;
use crate::waits::Waits;

/// Profiles and metrics of this process, over HTTP. The [crate's page](crate) shows a service with them.
///
/// Make it inside the service's runtime: heartbeat and metrics then watch that runtime. Add further runtimes with
/// [`runtime`](Self::runtime) or, from a thread of each, with
/// [`watch_current_runtime`](Self::watch_current_runtime).
#[derive(Clone)]
#[must_use]
pub struct DebugEndpoints {
    waits: Waits,
    runtimes: Runtimes,
    token: Option<Token>,
    trusts_loopback: bool,
    metrics: Option<OwnMetrics>,
    incidents: Option<Arc<Recorder>>,
    further: Router,
    index: String,
}

impl DebugEndpoints {
    /// Makes endpoints without a token: their [listener](Self::listen) answers only this machine.
    pub fn new() -> Self {
        let runtimes = Runtimes::default();
        runtimes.add_current();
        Self {
            waits: Waits::default(),
            runtimes,
            token: None,
            trusts_loopback: false,
            metrics: None,
            incidents: None,
            further: Router::new(),
            index: String::new(),
        }
    }

    /// Requires this token, and answers every request that has it, wherever it comes from. A request sends it as
    /// `Authorization: Bearer TOKEN`, or as the password of any user, as `http://any:TOKEN@host/debug/…` does. White
    /// space around the token, such as a file's newline, is removed.
    ///
    /// The token is sent in plain text. Over a network that you do not trust, put TLS in front.
    ///
    /// # Errors
    ///
    /// Returns an error if the token is empty, or if it is not visible ASCII, which no header could carry.
    pub fn token(mut self, token: impl AsRef<str>) -> Result<Self, TokenError> {
        self.token = Some(Token::new(token.as_ref())?);
        Ok(self)
    }

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
        self.trusts_loopback = true;
        self
    }

    /// Watches this runtime, too: heartbeat and metrics report each runtime by its name.
    pub fn runtime(self, name: &str, runtime: Handle) -> Self {
        self.runtimes.add(name, runtime);
        self
    }

    /// Watches the calling thread's runtime, too, under the thread's name. Does nothing outside of a runtime. If each worker
    /// makes a runtime, as in actix, call it in the closure that `HttpServer::new` takes: each worker calls that closure.
    pub fn watch_current_runtime(&self) {
        self.runtimes.add_current();
    }

    /// Adds the service's own counters to `/metrics`, before those of runtime and process. `text` returns text for
    /// Prometheus or, if it ends with `# EOF`, for `OpenMetrics`.
    pub fn metrics(
        mut self,
        text: impl Fn() -> Result<String, fmt::Error> + Send + Sync + 'static,
    ) -> Self {
        self.metrics = Some(Arc::new(text));
        self
    }

    /// Records incidents: when the service is stuck, too slow or short of something, keeps what its threads do and what
    /// requests wait for. [`Incidents`] defines when. `/debug/incidents` shows the last ten, and each writes a line with file
    /// and line number to the service's log, through `tracing` or `log`.
    ///
    /// A thread of its own watches from now on, even while the runtime stands still. With a listener it runs until the
    /// process ends, otherwise until the last clone of these endpoints or of their router is dropped. If the thread
    /// cannot be started, the log and `/debug/incidents` say so. A second call begins anew, and forgets what was
    /// recorded.
    pub fn record_incidents(mut self, incidents: Incidents) -> Self {
        let recorder = Arc::new(Recorder::new());
        watcher::start(&recorder, incidents, self.profiler(), self.runtimes.clone());
        self.incidents = Some(recorder);
        self
    }

    /// Counts, all the time, the seconds that the requests of each route spend in each kind of wait (a pool, a lock, a
    /// channel, another service's answer and so on), for the metrics. `/metrics` then has
    ///
    /// ```text
    /// route_wait_seconds_total{route="GET /report",wait="pool"} 412.7
    /// route_wait_seconds_total{route="GET /report",wait="database"} 31.9
    /// ```
    ///
    /// The sum over all values of `wait` is the time that requests of the route were in flight. Most values are the kinds of
    /// [`WaitKind`](crate::WaitKind). Two are no waits: a `running` request is being polled, and a `ready` one was woken and
    /// not yet polled. `other` stands for waits that are not well known, or were over before they could be seen.
    ///
    /// **The seconds are an estimate**, from ten samples a second, each of one request in flight, chosen at random. Over a
    /// time with `n` samples (`route_wait_samples_total`), a share `p` of the time of all requests has a relative standard
    /// error of `sqrt((1 - p) / (p n))`: for a tenth of the time, 5.5 % over five minutes (usually 9 to 11 % are reported)
    /// and 1.6 % over an hour. It is more if the number of requests in flight changes much. A rare short wait has no
    /// sample at all.
    ///
    /// There are at most 33 routes, of which the last is `(other routes)`, with at most 22 kinds each: 726 series.
    /// Without debug information, all waits are `other`. A wait at a new place counts only when its name is known, ten
    /// seconds later or more; nothing is lost until then.
    ///
    /// Off by default, because a thread wakes ten times a second, and every request pays for the record of its wakes. The
    /// README has the figures. A second call changes nothing.
    pub fn count_waits(mut self) -> Self {
        self.waits.count();
        self
    }

    /// Adds the service's own endpoints, with the same access rules. `index` is added to the list at `/debug`: one line of
    /// text for each endpoint.
    pub fn routes(mut self, index: &str, routes: Router) -> Self {
        self.further = self.further.merge(routes);
        self.index.push_str(index);
        self
    }

    /// Returns the await profiler, with which you can wrap other futures. It is [armed](AwaitProfiler::armed).
    pub fn profiler(&self) -> AwaitProfiler {
        self.waits.profiler()
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
        let routes = under_debug(self.shared()).merge(self.further.clone());
        let guard = self.guard(if self.trusts_loopback {
            Guard::TrustedLoopback
        } else {
            Guard::Closed
        });
        // The guard leaves the fallback alone: the service answers paths that have no route.
        routes.route_layer(from_fn(move |request, next| {
            guard.clone().check(request, next)
        }))
    }

    /// Serves `/`, `/metrics` and everything under `/debug` until the process ends, from a thread of its own, which
    /// answers while the service cannot. Returns its address; port 0 picks a free one.
    ///
    /// # Errors
    ///
    /// Returns an error if the address is not on loopback and there is no [token](Self::token), if it cannot be bound,
    /// or if the listener's thread cannot be started.
    pub fn listen(&self, address: impl ToSocketAddrs) -> Result<SocketAddr, ListenError> {
        self.serve(net::TcpListener::bind(address)?)
    }

    /// Serves the same as [`listen`](Self::listen), on a listener that was bound before.
    ///
    /// # Errors
    ///
    /// Returns an error if the listener is not on loopback and there is no [token](Self::token), or if its thread
    /// cannot be started.
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
            incidents: self.incidents.clone(),
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
