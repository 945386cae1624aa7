//! The handle that a service keeps.

#[cfg(feature = "axum")]
mod on_axum;

use std::fmt;
use std::net::{self, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use await_profile::AwaitProfiler;
#[cfg(not(feature = "axum"))]
use http::StatusCode;
use http::{Request, Response};
use hyper::body::Incoming;
use tokio::runtime::Handle;

#[cfg(feature = "axum")]
use self::on_axum::OnAxum;
#[cfg(not(feature = "axum"))]
use crate::answer::Answer;
use crate::answer::Body;
use crate::cpu_profiler::CpuProfiler;
use crate::endpoints;
use crate::error::{ListenError, TokenError};
use crate::guard::{Guard, Token};
use crate::incidents::capture::Profiles;
use crate::incidents::options::Incidents;
use crate::incidents::recorder::Recorder;
use crate::incidents::watcher;
use crate::listener;
use crate::metrics;
use crate::runtimes::Runtimes;
use crate::shared::{OwnMetrics, Shared};
use crate::stacks::threads::ThreadProfiler;
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
    threads: ThreadProfiler,
    runtimes: Runtimes,
    token: Option<Token>,
    metrics: Option<OwnMetrics>,
    incidents: Option<Arc<Recorder>>,
    /// Lines of the list at `/debug` for the endpoints that the service adds.
    index: String,
    #[cfg(feature = "axum")]
    axum: OnAxum,
}

impl DebugEndpoints {
    /// Makes endpoints without a token: their [listener](Self::listen) answers only this machine.
    pub fn new() -> Self {
        let runtimes = Runtimes::default();
        runtimes.add_current();
        Self {
            waits: Waits::default(),
            threads: ThreadProfiler::default(),
            runtimes,
            token: None,
            metrics: None,
            incidents: None,
            index: String::new(),
            #[cfg(feature = "axum")]
            axum: OnAxum::default(),
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
        let profiles = Profiles {
            profiler: self.profiler(),
            last_waits: Arc::clone(&self.waits.last),
            last_threads: Arc::clone(&self.threads.last),
        };
        watcher::start(&recorder, incidents, profiles, self.runtimes.clone());
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

    /// Returns the await profiler, with which you can wrap other futures. It is [armed](AwaitProfiler::armed).
    pub fn profiler(&self) -> AwaitProfiler {
        self.waits.profiler()
    }

    /// Returns middleware that puts the requests of an actix `App` into await profiles, named by method and route. Call it in
    /// the closure that `HttpServer::new` takes: each worker calls that closure, and has its runtime
    /// [watched](Self::watch_current_runtime).
    #[cfg(feature = "actix")]
    pub fn actix(&self) -> await_profile::AwaitMiddleware {
        self.watch_current_runtime();
        self.profiler().actix()
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
        let asked = Asked {
            shared: self.shared(),
            guard: self.guard(Guard::OwnListener),
            #[cfg(feature = "axum")]
            axum: self.axum.clone(),
        };
        let asked = Arc::new(asked);
        let ask = move |request| Arc::clone(&asked).answer(request);
        Ok(listener::serve(listener, ask, listener::READ_WITHIN)?)
    }

    fn shared(&self) -> Arc<Shared> {
        metrics::prepare();
        Arc::new(Shared {
            cpu: CpuProfiler::default(),
            threads: self.threads.clone(),
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

/// What a listener answers.
struct Asked {
    shared: Arc<Shared>,
    guard: Guard,
    #[cfg(feature = "axum")]
    axum: OnAxum,
}

impl Asked {
    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        if let Some(refusal) = self.guard.refusal(&parts) {
            return refusal.into_response();
        }
        let path = match parts.uri.path() {
            "/" => "/debug",
            "/metrics" => "/debug/metrics",
            path => path,
        };
        if let Some(answer) = endpoints::answer(&self.shared, path, &parts).await {
            return answer.into_response();
        }
        #[cfg(feature = "axum")]
        return self.axum.answer(Request::from_parts(parts, body)).await;
        #[cfg(not(feature = "axum"))]
        {
            drop(body);
            Answer::empty(StatusCode::NOT_FOUND).into_response()
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
