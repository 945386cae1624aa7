//! Endpoints, with the answer of each path.

use std::sync::Arc;

#[cfg(feature = "flamegraph")]
use await_profile::{FlamegraphError, FlamegraphOptions};
use await_profile::{Frames, Profile};
use axum::extract::{Query, State};
use axum::handler::Handler;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use axum::{Json, Router};
use diagnosis::{Report, printable};
use serde::Deserialize;

use crate::cpu_profile::CpuProfile;
use crate::cpu_profiler::CpuProfiler;
use crate::error::EndpointError;
use crate::heap_profile;
use crate::heartbeat;
use crate::jemalloc;
use crate::limits::checked_duration;
use crate::look;
use crate::memory;
use crate::metrics;
use crate::missing_names;
use crate::own_thread::DESK;
use crate::page;
use crate::shared::Shared;
use crate::sockets;
use crate::tail;
use crate::tasks;
use crate::thread_flamegraph;
use crate::threads::ThreadProfile;

/// List of all paths, with the answer of each.
const INDEX: &str = "\
/debug/pprof/profile?seconds=N          CPU profile for go tool pprof (&format=folded|svg)
/debug/pprof/flamegraph?seconds=N       CPU flamegraph (&idle=true draws idle time too)
/debug/pprof/last?format=pprof|folded|svg   the last CPU profile again
/debug/await?seconds=N                  what requests wait for, folded stacks (&format=svg|pprof|json, &all=true)
/debug/pprof/await?seconds=N            the same for go tool pprof and collectors
/debug/await?seconds=N&tail=99           what only the slowest 1 % of each route wait for (&format=svg|json)
/debug/await/last?format=folded|svg|pprof|json   the last await profile again
/debug/threads?seconds=N                where each thread is blocked, folded stacks (&format=svg|json, &idle=true, &all=true)
/debug/threads/last?format=folded|svg|json   the last profile of threads again
/debug/tasks                            every task: where it waits, what it holds, who waits for whom (&of=NAME, &format=html|json|svg)
/debug/pprof/heap                       who keeps memory, by jemalloc (--features jemalloc)
/debug/heap?seconds=N                   heap profile for dhat's viewer (--features heap)
/debug/heartbeat?seconds=N              how late the runtimes and their blocking pools are, JSON
/debug/memory?seconds=N                 what is live, what the allocator keeps, and which grows, JSON
/debug/sockets?seconds=N                connections opened, by address, and Nagle's algorithm (&format=json)
/debug/look?seconds=N                   all of them at once, and what they say together (&format=json)
/debug/look?seconds=N&tail=99            why the p99 of each route is high, in three lines (&format=json)
/debug/incidents                        what the threads did when the service was stuck, slow or short of something (&format=json)
/debug/metrics                          counters, Prometheus text
";

/// Returns the routes under `/debug`.
pub(crate) fn under_debug(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/debug", get(index))
        .route("/debug/", get(index))
        .route("/debug/metrics", get(metrics_text))
        .route("/debug/heartbeat", taken(heartbeat))
        .route("/debug/memory", taken(memory))
        .route("/debug/sockets", taken(sockets))
        .route("/debug/look", taken(look_at_all))
        .route("/debug/incidents", get(incidents))
        .route("/debug/pprof/profile", taken(cpu_profile))
        .route("/debug/pprof/flamegraph", taken(cpu_flamegraph))
        .route("/debug/pprof/last", get(last_cpu_profile))
        .route("/debug/await", taken(await_profile))
        .route("/debug/pprof/await", taken(await_pprof))
        .route("/debug/await/last", get(last_await_profile))
        .route("/debug/threads", taken(threads))
        .route("/debug/threads/last", get(last_threads))
        .route("/debug/tasks", taken(all_tasks))
        .route("/debug/heap", taken(heap_profile))
        .route("/debug/pprof/heap", taken(heap_in_use))
        .with_state(shared)
}

/// Returns the route of an endpoint that takes time. A request for its head alone, such as a check that somebody listens,
/// takes no profile.
fn taken<H, T>(handler: H) -> MethodRouter<Arc<Shared>>
where
    H: Handler<T, Arc<Shared>>,
    T: 'static,
{
    get(handler).head(async || StatusCode::OK)
}

/// Returns the further routes of a listener.
pub(crate) fn at_the_top(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/", get(index))
        .route("/metrics", get(metrics_text))
        .with_state(shared)
}

/// Returns the list of paths, or to a browser the page that shows them.
async fn index(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    if page::is_wanted(&headers) {
        return page::answer();
    }
    let vary = [(header::VARY, "Accept")];
    (vary, format!("{INDEX}{}", shared.index)).into_response()
}

/// Parameters of a request.
#[derive(Debug, Clone, Deserialize)]
struct Request {
    #[serde(default = "ten")]
    seconds: f64,
    /// Samples a second, of a CPU profile.
    #[serde(default = "default_frequency")]
    frequency: u32,
    /// Captures a second, of an await profile.
    captures: Option<u32>,
    format: Option<Format>,
    /// Percentile above which the requests of a route are its tail.
    tail: Option<String>,
    #[serde(default)]
    idle: bool,
    /// Shows frames of frameworks, too.
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

impl Request {
    /// Returns the format of a CPU profile. Called before the profile is taken, which may take ten minutes.
    fn of_cpu(&self) -> Result<Format, EndpointError> {
        match self.format.unwrap_or(Format::Pprof) {
            Format::Json => {
                let reason = "a CPU profile has the formats pprof, folded and svg";
                Err(EndpointError::BadRequest(reason.to_owned()))
            }
            format => drawable(format),
        }
    }

    /// Returns the format of an await profile.
    fn of_waits(&self) -> Result<Format, EndpointError> {
        drawable(self.format.unwrap_or(Format::Folded))
    }

    /// Returns the format of a tail profile.
    fn of_tail(&self) -> Result<Format, EndpointError> {
        match self.format.unwrap_or(Format::Folded) {
            Format::Pprof => {
                let reason = "a tail profile has the formats folded, svg and json";
                Err(EndpointError::BadRequest(reason.to_owned()))
            }
            format => drawable(format),
        }
    }

    /// Returns the format of a profile of threads.
    fn of_threads(&self) -> Result<Format, EndpointError> {
        match self.format.unwrap_or(Format::Folded) {
            Format::Pprof => {
                let reason = "a profile of threads has the formats folded, svg and json";
                Err(EndpointError::BadRequest(reason.to_owned()))
            }
            format => drawable(format),
        }
    }

    /// Returns the format of an answer in words; `what` begins the sentence that refuses another.
    fn of_text(&self, what: &str) -> Result<Text, EndpointError> {
        match self.format {
            None => Ok(Text::Plain),
            Some(Format::Json) => Ok(Text::Json),
            Some(_) => Err(EndpointError::BadRequest(format!(
                "{what} told as text, without a format, and as format=json"
            ))),
        }
    }
}

/// Format of an answer in words.
#[derive(Clone, Copy)]
enum Text {
    Plain,
    Json,
}

fn drawable(format: Format) -> Result<Format, EndpointError> {
    if format == Format::Svg && !cfg!(feature = "flamegraph") {
        return Err(EndpointError::Unsupported(
            "this build draws no pictures: build debug-endpoints with its feature `flamegraph`, or ask for \
             format=pprof or format=folded",
        ));
    }
    Ok(format)
}

fn ten() -> f64 {
    10.0
}

fn default_frequency() -> u32 {
    CpuProfiler::DEFAULT_FREQUENCY
}

/// Runs `write` on a thread of its own: a picture of many stacks takes a second, in which no request may wait.
async fn written(
    write: impl FnOnce() -> Result<Response, EndpointError> + Send + 'static,
) -> Result<Response, EndpointError> {
    DESK.run(|_| write()).await?
}

async fn metrics_text(
    State(shared): State<Arc<Shared>>,
) -> Result<impl IntoResponse, EndpointError> {
    let own = match &shared.metrics {
        Some(own) => own().map_err(EndpointError::failed)?,
        None => String::new(),
    };
    let recorder = shared.incidents.as_ref();
    let incidents = recorder.map(|recorder| recorder.counts());
    let requests = shared.waits.requests();
    let (kind, text) = metrics::text(
        &own,
        &shared.runtimes.all(),
        &requests,
        incidents.as_deref(),
    );
    Ok(([(header::CONTENT_TYPE, kind)], text))
}

async fn heartbeat(
    State(shared): State<Arc<Shared>>,
    Query(request): Query<Request>,
) -> Result<impl IntoResponse, EndpointError> {
    let duration = checked_duration(request.seconds)?;
    heartbeat::watch(shared.runtimes.all(), duration)
        .await
        .map(Json)
}

async fn memory(
    State(shared): State<Arc<Shared>>,
    Query(request): Query<Request>,
) -> Result<impl IntoResponse, EndpointError> {
    let duration = checked_duration(request.seconds)?;
    memory::watch(shared.runtimes.all(), duration)
        .await
        .map(Json)
}

async fn sockets(Query(request): Query<Request>) -> Result<Response, EndpointError> {
    let format = request.of_text("sockets are")?;
    let sockets = sockets::watch(checked_duration(request.seconds)?).await?;
    Ok(match format {
        Text::Plain => sockets.to_string().into_response(),
        Text::Json => Json(sockets).into_response(),
    })
}

async fn look_at_all(
    State(shared): State<Arc<Shared>>,
    Query(request): Query<Request>,
) -> Result<Response, EndpointError> {
    let format = request.of_text("a look is")?;
    if let Some(tail) = &request.tail {
        let percentile = tail::percentile(tail)?;
        let duration = checked_duration(request.seconds)?;
        let waits = shared
            .waits
            .record_tail(duration, request.captures, percentile);
        let profile = waits.await?;
        return written(move || tail_in_words(&profile, format)).await;
    }
    let evidence = look::look(&shared, checked_duration(request.seconds)?).await;
    // After the other instruments: the threads stand still for it.
    let tasks = tasks::lines().await;
    written(move || {
        let told = look::WithText::new(Report::new(&evidence), tasks);
        Ok(match format {
            Text::Plain => printable(&told.text).into_response(),
            Text::Json => Json(told).into_response(),
        })
    })
    .await
}

async fn incidents(
    State(shared): State<Arc<Shared>>,
    Query(request): Query<Request>,
) -> Result<Response, EndpointError> {
    let format = request.of_text("incidents are")?;
    let recorder = shared
        .incidents
        .as_ref()
        .ok_or(EndpointError::NotRecorded)?;
    Ok(match format {
        Text::Plain => printable(&recorder.text()).into_response(),
        Text::Json => Json(recorder.shown()).into_response(),
    })
}

async fn cpu_profile(
    State(shared): State<Arc<Shared>>,
    Query(request): Query<Request>,
) -> Result<Response, EndpointError> {
    let format = request.of_cpu()?;
    let duration = checked_duration(request.seconds)?;
    let profile = shared.cpu.record(duration, request.frequency).await?;
    written(move || cpu_response(&profile, format, request.idle)).await
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
    let format = request.of_cpu()?;
    let profile = shared.cpu.last.get().ok_or(EndpointError::NothingYet)?;
    written(move || cpu_response(&profile, format, request.idle)).await
}

fn cpu_response(
    profile: &CpuProfile,
    format: Format,
    idle: bool,
) -> Result<Response, EndpointError> {
    let mut samples = HeaderMap::new();
    samples.insert("x-samples", HeaderValue::from(profile.samples()));
    if let Some(note) = &profile.note {
        // It has names of threads, which may be anything.
        let note = printable(note).replace(['\n', '\t'], " ");
        if let Ok(note) = HeaderValue::from_bytes(note.as_bytes()) {
            samples.insert("x-note", note);
        }
    }
    Ok(match format {
        Format::Pprof => {
            (samples, attachment("profile.pb.gz"), profile.pprof.clone()).into_response()
        }
        Format::Svg => (samples, svg(profile.flamegraph(idle)?)).into_response(),
        Format::Folded | Format::Json => {
            (samples, printable(&profile.folded(idle))).into_response()
        }
    })
}

async fn await_profile(
    State(shared): State<Arc<Shared>>,
    Query(request): Query<Request>,
) -> Result<Response, EndpointError> {
    if let Some(tail) = &request.tail {
        let (format, percentile) = (request.of_tail()?, tail::percentile(tail)?);
        let duration = checked_duration(request.seconds)?;
        let waits = shared
            .waits
            .record_tail(duration, request.captures, percentile);
        let profile = waits.await?;
        return written(move || tail_response(&profile, format, request.all)).await;
    }
    let format = request.of_waits()?;
    let duration = checked_duration(request.seconds)?;
    let profile = shared.waits.record(duration, request.captures).await?;
    written(move || waits_response(&profile, format, request.all)).await
}

async fn await_pprof(
    state: State<Arc<Shared>>,
    Query(mut request): Query<Request>,
) -> Result<Response, EndpointError> {
    request.format = request.format.or(Some(Format::Pprof));
    await_profile(state, Query(request)).await
}

async fn last_await_profile(
    State(shared): State<Arc<Shared>>,
    Query(request): Query<Request>,
) -> Result<Response, EndpointError> {
    let format = request.of_waits()?;
    let profile = shared.waits.last.get().ok_or(EndpointError::NothingYet)?;
    written(move || waits_response(&profile, format, request.all)).await
}

fn waits_response(profile: &Profile, format: Format, all: bool) -> Result<Response, EndpointError> {
    let frames = if all { Frames::All } else { Frames::Own };
    let folded = profile.folded(frames);
    let mut headers = HeaderMap::new();
    if let Some(note) = missing_names::in_waits(profile) {
        headers.insert("x-note", HeaderValue::from_static(note));
    }
    Ok(match format {
        Format::Folded => {
            if folded.is_empty() {
                return Err(EndpointError::NoRequests(why_empty(profile)));
            }
            (headers, printable(&folded)).into_response()
        }
        Format::Json => (headers, Json(profile.summary())).into_response(),
        Format::Pprof => {
            (headers, attachment("await.pb.gz"), profile.pprof(frames)).into_response()
        }
        Format::Svg => (headers, svg(drawn_waits(profile, frames)?)).into_response(),
    })
}

fn tail_response(profile: &Profile, format: Format, all: bool) -> Result<Response, EndpointError> {
    let frames = if all { Frames::All } else { Frames::Own };
    let mut headers = HeaderMap::new();
    if let Ok(note) = HeaderValue::from_str(&tail::left_out(profile)?) {
        headers.insert("x-note", note);
    }
    Ok(match format {
        Format::Svg => (headers, svg(tail::drawn(profile, frames)?)).into_response(),
        Format::Json => Json(tail::with_text(profile)?).into_response(),
        Format::Folded | Format::Pprof => {
            (headers, printable(&tail::folded(profile, frames)?)).into_response()
        }
    })
}

fn tail_in_words(profile: &Profile, format: Text) -> Result<Response, EndpointError> {
    Ok(match format {
        Text::Plain => printable(&tail::with_text(profile)?.text).into_response(),
        Text::Json => Json(tail::with_text(profile)?).into_response(),
    })
}

/// Returns why a profile has no stack: no request came, or all were answered between two samples.
fn why_empty(profile: &Profile) -> String {
    let summary = profile.summary();
    let (mut timed, mut total_ms) = (0, 0.0);
    for route in &summary.routes {
        if let Some(ms) = route.measured_latency_ms {
            timed += route.finished;
            total_ms += route.finished as f64 * ms;
        }
    }
    match summary.finished {
        0 => "no request was in flight meanwhile; put load on the server and ask again".to_owned(),
        finished => {
            let took = match timed {
                0 => String::new(),
                timed => format!(" in {:.3} ms on average", total_ms / timed as f64),
            };
            format!(
                "no request was in flight whenever this looked, but {finished} finished meanwhile{took}: if clients wait \
                 longer, they wait outside of the handlers, for a body, a socket or a proxy"
            )
        }
    }
}

#[cfg(feature = "flamegraph")]
fn drawn_waits(profile: &Profile, frames: Frames) -> Result<String, EndpointError> {
    let options = FlamegraphOptions::default().frames(frames);
    profile.flamegraph(&options).map_err(|error| match error {
        FlamegraphError::Empty => EndpointError::NoRequests(why_empty(profile)),
        other => EndpointError::failed(other),
    })
}

#[cfg(not(feature = "flamegraph"))]
fn drawn_waits(_: &Profile, _: Frames) -> Result<String, EndpointError> {
    drawable(Format::Svg).map(|_| String::new())
}

fn svg(drawn: String) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "image/svg+xml")], drawn)
}

async fn threads(
    State(shared): State<Arc<Shared>>,
    Query(request): Query<Request>,
) -> Result<Response, EndpointError> {
    let format = request.of_threads()?;
    let duration = checked_duration(request.seconds)?;
    let profile = shared.threads.record(duration).await?;
    written(move || threads_response(&profile, format, &request)).await
}

async fn last_threads(
    State(shared): State<Arc<Shared>>,
    Query(request): Query<Request>,
) -> Result<Response, EndpointError> {
    let format = request.of_threads()?;
    let profile = shared.threads.last.get().ok_or(EndpointError::NothingYet)?;
    written(move || threads_response(&profile, format, &request)).await
}

fn threads_response(
    profile: &ThreadProfile,
    format: Format,
    request: &Request,
) -> Result<Response, EndpointError> {
    let mut headers = HeaderMap::new();
    if let Some(Ok(note)) = profile.note().map(HeaderValue::from_str) {
        headers.insert("x-note", note);
    }
    let (idle, all) = (request.idle, request.all);
    Ok(match format {
        Format::Svg => (headers, svg(thread_flamegraph::draw(profile, idle, all)?)).into_response(),
        Format::Json => (headers, Json(profile)).into_response(),
        Format::Folded | Format::Pprof => {
            (headers, printable(&profile.folded(idle, all))).into_response()
        }
    })
}

async fn all_tasks(Query(request): Query<tasks::Request>) -> Result<Response, EndpointError> {
    tasks::answer(request).await
}

async fn heap_profile(Query(request): Query<Request>) -> Result<Response, EndpointError> {
    let json = heap_profile::record(checked_duration(request.seconds)?).await?;
    Ok((attachment("dhat-heap.json"), json).into_response())
}

async fn heap_in_use() -> Result<Response, EndpointError> {
    written(|| Ok((attachment("heap.pb.gz"), jemalloc::in_use()?).into_response())).await
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
