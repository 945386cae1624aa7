//! The admin listener: profiles and counters, on loopback, on a thread of its own.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use await_profile::{FlamegraphError, FlamegraphOptions, Frames, Profile};
use axum::extract::{Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use serde::Deserialize;
use tokio::net::TcpListener;

use crate::admin_error::AdminError;
use crate::connection::accept;
use crate::cpu_profile::CpuProfile;
use crate::cpu_profiler::CpuProfiler;
use crate::heap_profile;
use crate::locality;
use crate::metrics::Metrics;
use crate::waits::Waits;

/// The longest profile that one request may ask for.
const LONGEST_SECONDS: f64 = 600.0;

const INDEX: &str = "\
/metrics                                counters, Prometheus text
/debug/pprof/profile?seconds=N          CPU profile for go tool pprof (&format=folded|svg)
/debug/pprof/flamegraph?seconds=N       CPU flamegraph (&idle=true draws idle time too)
/debug/pprof/last?format=pprof|folded|svg   the last CPU profile again
/debug/await?seconds=N                  what requests wait for, folded stacks (&format=svg|pprof|json)
/debug/await/last?format=folded|svg|pprof|json   the last await profile again
/debug/heap?seconds=N                   heap profile for dhat's viewer (--features heap)
/debug/placement                        which copy of the data is read from where
";

/// The running admin listener.
#[derive(Debug)]
pub(crate) struct Admin {
    address: SocketAddr,
}

#[derive(Debug)]
struct Shared {
    metrics: Metrics,
    cpu: CpuProfiler,
    waits: Waits,
}

impl Admin {
    /// Serves `listener` from a new thread, so that a stalled reactor still answers here.
    pub(crate) fn start(
        listener: TcpListener,
        metrics: Metrics,
        waits: Waits,
    ) -> std::io::Result<Self> {
        let address = listener.local_addr()?;
        let listener = listener.into_std()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let shared = Arc::new(Shared {
            metrics,
            cpu: CpuProfiler::ready(),
            waits,
        });
        std::thread::Builder::new()
            .name("admin".to_owned())
            .spawn(move || runtime.block_on(serve(listener, routes(shared))))?;
        Ok(Self { address })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

/// In HTTP/1 alone: `axum::serve` speaks HTTP/2 as well, which is a quarter of all that would be
/// compiled of the lab.
async fn serve(listener: std::net::TcpListener, routes: Router) -> std::io::Result<Infallible> {
    let listener = TcpListener::from_std(listener)?;
    loop {
        let stream = TokioIo::new(accept(&listener).await);
        let routes = TowerToHyperService::new(routes.clone());
        tokio::spawn(http1::Builder::new().serve_connection(stream, routes));
    }
}

fn routes(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/", get(async || INDEX))
        .route("/metrics", get(metrics))
        .route("/debug/pprof/profile", get(cpu_profile))
        .route("/debug/pprof/flamegraph", get(cpu_flamegraph))
        .route("/debug/pprof/last", get(last_cpu_profile))
        .route("/debug/await", get(await_profile))
        .route("/debug/await/last", get(last_await_profile))
        .route("/debug/heap", get(heap_profile))
        .route(
            "/debug/placement",
            get(async || Json(locality::placement())),
        )
        .with_state(shared)
}

/// How a profile is to be taken and written.
#[derive(Debug, Clone, Deserialize)]
struct Request {
    #[serde(default = "ten")]
    seconds: f64,
    /// Samples a second, of a CPU profile.
    #[serde(default = "default_frequency")]
    frequency: u16,
    /// Captures a second, of an await profile.
    captures: Option<u32>,
    format: Option<Format>,
    #[serde(default)]
    idle: bool,
    /// Frames of frameworks too.
    #[serde(default)]
    all: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    Pprof,
    Folded,
    Svg,
    Json,
}

fn ten() -> f64 {
    10.0
}

fn default_frequency() -> u16 {
    CpuProfiler::DEFAULT_FREQUENCY
}

/// A profile's duration, unless it makes no sense.
fn sensible(seconds: f64) -> Result<Duration, AdminError> {
    if seconds > 0.0 && seconds <= LONGEST_SECONDS {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err(AdminError::BadRequest(format!(
            "seconds must be over 0 and at most {LONGEST_SECONDS}, not {seconds}"
        )))
    }
}

async fn metrics(State(shared): State<Arc<Shared>>) -> Result<impl IntoResponse, AdminError> {
    let text = shared
        .metrics
        .text()
        .map_err(|e| AdminError::Failed(e.to_string()))?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text))
}

async fn cpu_profile(
    State(shared): State<Arc<Shared>>,
    Query(request): Query<Request>,
) -> Result<Response, AdminError> {
    let duration = sensible(request.seconds)?;
    let profile = shared.cpu.record(duration, request.frequency).await?;
    cpu_response(&profile, &request)
}

async fn cpu_flamegraph(
    state: State<Arc<Shared>>,
    Query(mut request): Query<Request>,
) -> Result<Response, AdminError> {
    request.format = Some(Format::Svg);
    cpu_profile(state, Query(request)).await
}

async fn last_cpu_profile(
    State(shared): State<Arc<Shared>>,
    Query(request): Query<Request>,
) -> Result<Response, AdminError> {
    let profile = shared.cpu.last().ok_or(AdminError::NothingYet)?;
    cpu_response(&profile, &request)
}

fn cpu_response(profile: &CpuProfile, request: &Request) -> Result<Response, AdminError> {
    let samples = [("x-samples", profile.samples().to_string())];
    Ok(match request.format.unwrap_or(Format::Pprof) {
        Format::Pprof => (samples, attachment("profile.pb.gz"), profile.pprof()).into_response(),
        Format::Folded => (samples, profile.folded(request.idle)).into_response(),
        Format::Svg => (samples, svg(profile.flamegraph(request.idle)?)).into_response(),
        Format::Json => {
            let reason = "a CPU profile has the formats pprof, folded and svg";
            return Err(AdminError::BadRequest(reason.to_owned()));
        }
    })
}

async fn await_profile(
    State(shared): State<Arc<Shared>>,
    Query(request): Query<Request>,
) -> Result<Response, AdminError> {
    let duration = sensible(request.seconds)?;
    let profile = shared.waits.record(duration, request.captures).await?;
    waits_response(&profile, &request)
}

async fn last_await_profile(
    State(shared): State<Arc<Shared>>,
    Query(request): Query<Request>,
) -> Result<Response, AdminError> {
    let profile = shared.waits.last().ok_or(AdminError::NothingYet)?;
    waits_response(&profile, &request)
}

fn waits_response(profile: &Profile, request: &Request) -> Result<Response, AdminError> {
    let frames = if request.all {
        Frames::All
    } else {
        Frames::Own
    };
    Ok(match request.format.unwrap_or(Format::Folded) {
        Format::Folded => profile.folded(frames).into_response(),
        Format::Json => Json(profile.summary()).into_response(),
        Format::Pprof => (attachment("await.pb.gz"), profile.pprof(frames)).into_response(),
        Format::Svg => {
            let options = FlamegraphOptions::default().frames(frames);
            let drawn = profile.flamegraph(&options).map_err(|error| match error {
                FlamegraphError::Empty => AdminError::NoRequests,
                other => AdminError::Failed(other.to_string()),
            })?;
            svg(drawn).into_response()
        }
    })
}

fn svg(drawn: String) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "image/svg+xml")], drawn)
}

async fn heap_profile(Query(request): Query<Request>) -> Result<Response, AdminError> {
    let json = heap_profile::record(sensible(request.seconds)?).await?;
    Ok((attachment("dhat-heap.json"), json).into_response())
}

fn attachment(name: &str) -> [(header::HeaderName, String); 2] {
    [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (
            header::CONTENT_DISPOSITION,
            format!("attachment; filename=\"{name}\""),
        ),
    ]
}
