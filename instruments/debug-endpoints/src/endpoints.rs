//! What each address answers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use await_profile::{FlamegraphError, FlamegraphOptions, Frames, Profile};
use axum::extract::{Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::Deserialize;
use tokio::runtime::Handle;

use crate::cpu_profile::CpuProfile;
use crate::cpu_profiler::CpuProfiler;
use crate::error::EndpointError;
use crate::heap_profile;
use crate::heartbeat;
use crate::metrics;
use crate::waits::Waits;

/// The longest profile that one request may ask for.
const LONGEST_SECONDS: f64 = 600.0;

/// One address a line, with what it answers.
const INDEX: &str = "\
/debug/pprof/profile?seconds=N          CPU profile for go tool pprof (&format=folded|svg)
/debug/pprof/flamegraph?seconds=N       CPU flamegraph (&idle=true draws idle time too)
/debug/pprof/last?format=pprof|folded|svg   the last CPU profile again
/debug/await?seconds=N                  what requests wait for, folded stacks (&format=svg|pprof|json)
/debug/await/last?format=folded|svg|pprof|json   the last await profile again
/debug/heap?seconds=N                   heap profile for dhat's viewer (--features heap)
/debug/heartbeat?seconds=N              how late the runtime's ticks are, JSON
/debug/metrics                          counters, Prometheus text
";

/// The service's own counters, as text for Prometheus.
pub(crate) type OwnMetrics = Arc<dyn Fn() -> Result<String, fmt::Error> + Send + Sync>;

/// What the endpoints know of the service.
pub(crate) struct Shared {
    pub(crate) cpu: CpuProfiler,
    pub(crate) waits: Waits,
    pub(crate) runtime: Option<Handle>,
    pub(crate) metrics: Option<OwnMetrics>,
    /// Lines of the index for what the service adds.
    pub(crate) index: String,
}

/// All that is under `/debug`.
pub(crate) fn under_debug(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/debug", get(index))
        .route("/debug/metrics", get(metrics_text))
        .route("/debug/heartbeat", get(heartbeat))
        .route("/debug/pprof/profile", get(cpu_profile))
        .route("/debug/pprof/flamegraph", get(cpu_flamegraph))
        .route("/debug/pprof/last", get(last_cpu_profile))
        .route("/debug/await", get(await_profile))
        .route("/debug/await/last", get(last_await_profile))
        .route("/debug/heap", get(heap_profile))
        .with_state(shared)
}

/// What a listener that serves nothing else has beside that.
pub(crate) fn at_the_top(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/", get(index))
        .route("/metrics", get(metrics_text))
        .with_state(shared)
}

async fn index(State(shared): State<Arc<Shared>>) -> String {
    format!("{INDEX}{}", shared.index)
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

/// How long a profile is to take, if that is within bounds.
fn checked_duration(seconds: f64) -> Result<Duration, EndpointError> {
    if seconds > 0.0 && seconds <= LONGEST_SECONDS {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err(EndpointError::BadRequest(format!(
            "seconds must be over 0 and at most {LONGEST_SECONDS}, not {seconds}"
        )))
    }
}

async fn metrics_text(
    State(shared): State<Arc<Shared>>,
) -> Result<impl IntoResponse, EndpointError> {
    let own = shared.metrics.as_ref().map(|own| own()).transpose();
    let own = own.map_err(EndpointError::failed)?.unwrap_or_default();
    let (kind, text) = metrics::text(&own, shared.runtime.as_ref());
    Ok(([(header::CONTENT_TYPE, kind)], text))
}

async fn heartbeat(
    State(shared): State<Arc<Shared>>,
    Query(request): Query<Request>,
) -> Result<impl IntoResponse, EndpointError> {
    let runtime = shared.runtime.clone().ok_or(EndpointError::Unsupported(
        "there is no tokio runtime to watch: make the DebugEndpoints within the service's",
    ))?;
    let duration = checked_duration(request.seconds)?;
    heartbeat::watch(runtime, duration).await.map(Json)
}

async fn cpu_profile(
    State(shared): State<Arc<Shared>>,
    Query(request): Query<Request>,
) -> Result<Response, EndpointError> {
    let duration = checked_duration(request.seconds)?;
    let profile = shared.cpu.record(duration, request.frequency).await?;
    cpu_response(&profile, &request)
}

async fn cpu_flamegraph(
    state: State<Arc<Shared>>,
    Query(mut request): Query<Request>,
) -> Result<Response, EndpointError> {
    request.format = Some(Format::Svg);
    cpu_profile(state, Query(request)).await
}

async fn last_cpu_profile(
    State(shared): State<Arc<Shared>>,
    Query(request): Query<Request>,
) -> Result<Response, EndpointError> {
    let profile = shared.cpu.last().ok_or(EndpointError::NothingYet)?;
    cpu_response(&profile, &request)
}

fn cpu_response(profile: &CpuProfile, request: &Request) -> Result<Response, EndpointError> {
    let samples = [("x-samples", profile.samples().to_string())];
    Ok(match request.format.unwrap_or(Format::Pprof) {
        Format::Pprof => (samples, attachment("profile.pb.gz"), profile.pprof()).into_response(),
        Format::Folded => (samples, profile.folded(request.idle)).into_response(),
        Format::Svg => (samples, svg(profile.flamegraph(request.idle)?)).into_response(),
        Format::Json => {
            let reason = "a CPU profile has the formats pprof, folded and svg";
            return Err(EndpointError::BadRequest(reason.to_owned()));
        }
    })
}

async fn await_profile(
    State(shared): State<Arc<Shared>>,
    Query(request): Query<Request>,
) -> Result<Response, EndpointError> {
    let duration = checked_duration(request.seconds)?;
    let profile = shared.waits.record(duration, request.captures).await?;
    waits_response(&profile, &request)
}

async fn last_await_profile(
    State(shared): State<Arc<Shared>>,
    Query(request): Query<Request>,
) -> Result<Response, EndpointError> {
    let profile = shared.waits.last().ok_or(EndpointError::NothingYet)?;
    waits_response(&profile, &request)
}

fn waits_response(profile: &Profile, request: &Request) -> Result<Response, EndpointError> {
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
                FlamegraphError::Empty => EndpointError::NoRequests,
                other => EndpointError::failed(other),
            })?;
            svg(drawn).into_response()
        }
    })
}

fn svg(drawn: String) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "image/svg+xml")], drawn)
}

async fn heap_profile(Query(request): Query<Request>) -> Result<Response, EndpointError> {
    let json = heap_profile::record(checked_duration(request.seconds)?).await?;
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
