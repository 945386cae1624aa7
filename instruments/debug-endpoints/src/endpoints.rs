//! Endpoints, with the answer of each path.

use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "flamegraph")]
use await_profile::{FlamegraphError, FlamegraphOptions};
use await_profile::{Frames, Percentile, Profile, Summary};
use diagnosis::{Addresses, Finding, Neighbours, Process, Report, printable};
use http::header::{self, HeaderMap};
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::answer::Answer;
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
use crate::recent::Recent;
use crate::shared::Shared;
use crate::sockets;
use crate::stacks::threads::ThreadProfile;
use crate::tail;
use crate::tasks;
use crate::thread_flamegraph;

/// List of all paths, with the answer of each.
const INDEX: &str = "\
/debug/pprof/profile?seconds=N          CPU profile for go tool pprof (&format=folded|svg)
/debug/pprof/flamegraph?seconds=N       CPU flamegraph (&idle=true draws idle time too)
/debug/pprof/last?format=pprof|folded|svg   the last CPU profile again
/debug/await?seconds=N                  what requests wait for, folded stacks (&format=svg|pprof|json, &all=true)
/debug/pprof/await?seconds=N            the same for go tool pprof and collectors
/debug/await?seconds=N&tail=99           what only the slowest 1 % of each route wait for (&format=svg|json)
/debug/await/last?format=folded|svg|pprof|json   the last await profile again
/debug/await/recent                     where the requests of the last five minutes were, by route and line, JSON
/debug/threads?seconds=N                where each thread is blocked, folded stacks (&format=svg|json, &idle=true, &all=true)
/debug/threads/last?format=folded|svg|json   the last profile of threads again
/debug/tasks                            every task: where it waits, what it holds, who waits for whom (&of=NAME, &format=html|json|svg)
/debug/pprof/heap                       who keeps memory, by jemalloc (--features jemalloc)
/debug/heap?seconds=N                   heap profile for dhat's viewer (--features heap)
/debug/heartbeat?seconds=N              how late the runtimes and their blocking pools are, JSON
/debug/memory?seconds=N                 what is live, what the allocator keeps, and which grows, JSON
/debug/sockets?seconds=N                connections by address, Nagle's algorithm, lost datagrams (&format=json)
/debug/look?seconds=N                   all of them at once, and what they say together (&format=json|evidence)
/debug/look?seconds=N&tail=99            why the p99 of each route is high, in three lines (&format=json)
/debug/incidents                        what the threads did when the service was stuck, slow or short of something (&format=json)
/debug/metrics                          counters, Prometheus text
";

/// Paths of all endpoints.
pub(crate) const PATHS: [&str; 20] = [
    "/debug",
    "/debug/",
    "/debug/metrics",
    "/debug/heartbeat",
    "/debug/memory",
    "/debug/sockets",
    "/debug/look",
    "/debug/incidents",
    "/debug/pprof/profile",
    "/debug/pprof/flamegraph",
    "/debug/pprof/last",
    "/debug/await",
    "/debug/pprof/await",
    "/debug/await/last",
    "/debug/await/recent",
    "/debug/threads",
    "/debug/threads/last",
    "/debug/tasks",
    "/debug/heap",
    "/debug/pprof/heap",
];

/// Those of them that take no time.
const AT_ONCE: [&str; 7] = [
    "/debug",
    "/debug/",
    "/debug/metrics",
    "/debug/incidents",
    "/debug/pprof/last",
    "/debug/await/last",
    "/debug/threads/last",
];

/// Answers a request for one of the [`PATHS`], or returns None for any other path.
pub(crate) async fn answer(shared: &Arc<Shared>, path: &str, asked: &Parts) -> Option<Answer> {
    if !PATHS.contains(&path) {
        return None;
    }
    // A request for a head alone, such as a check that somebody listens, takes no profile.
    if asked.method == Method::HEAD && !AT_ONCE.contains(&path) {
        return Some(Answer::empty(StatusCode::OK));
    }
    if ![Method::GET, Method::HEAD].contains(&asked.method) {
        let refusal = Answer::empty(StatusCode::METHOD_NOT_ALLOWED);
        return Some(refusal.with(header::ALLOW, HeaderValue::from_static("GET,HEAD")));
    }
    Some(ask(shared, path, asked).await.unwrap_or_else(Answer::from))
}

async fn ask(shared: &Arc<Shared>, path: &str, asked: &Parts) -> Result<Answer, EndpointError> {
    match path {
        "/debug" | "/debug/" => Ok(index(shared, &asked.headers)),
        "/debug/metrics" => metrics_text(shared),
        "/debug/heartbeat" => heartbeat(shared, parameters(asked)?).await,
        "/debug/memory" => memory(shared, parameters(asked)?).await,
        "/debug/sockets" => sockets(parameters(asked)?).await,
        "/debug/look" => look_at_all(shared, parameters(asked)?).await,
        "/debug/incidents" => incidents(shared, &parameters(asked)?),
        "/debug/pprof/profile" => cpu_profile(shared, parameters(asked)?).await,
        "/debug/pprof/flamegraph" => cpu_flamegraph(shared, parameters(asked)?).await,
        "/debug/pprof/last" => last_cpu_profile(shared, parameters(asked)?).await,
        "/debug/await" => await_profile(shared, parameters(asked)?).await,
        "/debug/pprof/await" => await_pprof(shared, parameters(asked)?).await,
        "/debug/await/last" => last_await_profile(shared, parameters(asked)?).await,
        "/debug/await/recent" => recent_waits(shared),
        "/debug/threads" => threads(shared, parameters(asked)?).await,
        "/debug/threads/last" => last_threads(shared, parameters(asked)?).await,
        "/debug/tasks" => all_tasks(parameters(asked)?).await,
        "/debug/heap" => heap_profile(parameters(asked)?).await,
        "/debug/pprof/heap" => heap_in_use().await,
        _ => Ok(Answer::empty(StatusCode::NOT_FOUND)),
    }
}

/// Returns the parameters of a request's query.
fn parameters<T: DeserializeOwned>(asked: &Parts) -> Result<T, EndpointError> {
    let query = asked.uri.query().unwrap_or_default();
    serde_urlencoded::from_str(query)
        .map_err(|error| EndpointError::BadRequest(format!("{error}: ?{}", printable(query))))
}

/// Returns the list of paths, or to a browser the page that shows them.
fn index(shared: &Shared, headers: &HeaderMap) -> Answer {
    if page::is_wanted(headers) {
        return page::answer();
    }
    let list = Answer::text(format!("{INDEX}{}", shared.index));
    list.with(header::VARY, HeaderValue::from_static("Accept"))
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

/// Parameters of a look.
#[derive(Debug, Deserialize)]
struct LookRequest {
    #[serde(default = "ten")]
    seconds: f64,
    captures: Option<u32>,
    format: Option<LookFormat>,
    /// Keeps the hosts of other services in the evidence.
    #[serde(default)]
    addresses: bool,
    tail: Option<String>,
}

/// Format of a look other than text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum LookFormat {
    Json,
    /// What was seen, to be judged elsewhere.
    Evidence,
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
    write: impl FnOnce() -> Result<Answer, EndpointError> + Send + 'static,
) -> Result<Answer, EndpointError> {
    DESK.run(|_| write()).await?
}

fn metrics_text(shared: &Shared) -> Result<Answer, EndpointError> {
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
    Ok(Answer::of(kind, text))
}

async fn heartbeat(shared: &Arc<Shared>, request: Request) -> Result<Answer, EndpointError> {
    let duration = checked_duration(request.seconds)?;
    Answer::json(&heartbeat::watch(shared.runtimes.all(), duration).await?)
}

async fn memory(shared: &Arc<Shared>, request: Request) -> Result<Answer, EndpointError> {
    let duration = checked_duration(request.seconds)?;
    Answer::json(&memory::watch(shared.runtimes.all(), duration).await?)
}

async fn sockets(request: Request) -> Result<Answer, EndpointError> {
    let format = request.of_text("sockets are")?;
    let sockets = sockets::watch(checked_duration(request.seconds)?).await?;
    match format {
        Text::Plain => Ok(Answer::text(sockets.to_string())),
        Text::Json => Answer::json(&sockets),
    }
}

async fn look_at_all(shared: &Arc<Shared>, request: LookRequest) -> Result<Answer, EndpointError> {
    if let Some(tail) = &request.tail {
        let percentile = tail::percentile(tail)?;
        if request.format == Some(LookFormat::Evidence) {
            let reason =
                "a look at the tail has no evidence to judge; leave `tail` or `format` out";
            return Err(EndpointError::BadRequest(reason.to_owned()));
        }
        let (profile, lost) =
            take_tail(shared, request.seconds, request.captures, percentile).await?;
        return written(move || tail_in_words(&profile, lost, request.format)).await;
    }
    let mut evidence = look::look(shared, checked_duration(request.seconds)?).await;
    // After the other instruments: the threads stand still for it.
    let (lines, tasks) = tasks::watch().await.unzip();
    evidence.tasks = tasks;
    written(move || {
        let told = || look::WithTasks::new(Report::new(&evidence), lines.unwrap_or_default());
        match request.format {
            None => Ok(Answer::text(printable(&told().text))),
            Some(LookFormat::Json) => Answer::json(&told()),
            Some(LookFormat::Evidence) => {
                let addresses = if request.addresses {
                    Addresses::Kept
                } else {
                    Addresses::Numbered
                };
                Ok(Answer::of("application/json", evidence.to_file(addresses)))
            }
        }
    })
    .await
}

fn incidents(shared: &Shared, request: &Request) -> Result<Answer, EndpointError> {
    let format = request.of_text("incidents are")?;
    let recorder = shared
        .incidents
        .as_ref()
        .ok_or(EndpointError::NotRecorded)?;
    match format {
        Text::Plain => Ok(Answer::text(printable(&recorder.text()))),
        Text::Json => Answer::json(&recorder.shown()),
    }
}

async fn cpu_profile(shared: &Arc<Shared>, request: Request) -> Result<Answer, EndpointError> {
    let format = request.of_cpu()?;
    let duration = checked_duration(request.seconds)?;
    let profile = shared.cpu.record(duration, request.frequency).await?;
    written(move || cpu_response(&profile, format, request.idle)).await
}

async fn cpu_flamegraph(
    shared: &Arc<Shared>,
    mut request: Request,
) -> Result<Answer, EndpointError> {
    request.format = Some(Format::Svg);
    cpu_profile(shared, request).await
}

async fn last_cpu_profile(shared: &Arc<Shared>, request: Request) -> Result<Answer, EndpointError> {
    let format = request.of_cpu()?;
    let profile = shared.cpu.last.get().ok_or(EndpointError::NothingYet)?;
    written(move || cpu_response(&profile, format, request.idle)).await
}

fn cpu_response(profile: &CpuProfile, format: Format, idle: bool) -> Result<Answer, EndpointError> {
    let answer = match format {
        Format::Pprof => Answer::attachment("profile.pb.gz", profile.pprof.clone()),
        Format::Svg => Answer::svg(profile.flamegraph(idle)?),
        Format::Folded | Format::Json => Answer::text(printable(&profile.folded(idle))),
    };
    let answer = answer.with_samples(profile.samples());
    Ok(answer.noted(profile.note.as_deref()))
}

async fn await_profile(shared: &Arc<Shared>, request: Request) -> Result<Answer, EndpointError> {
    if let Some(tail) = &request.tail {
        let (format, percentile) = (request.of_tail()?, tail::percentile(tail)?);
        let (profile, lost) =
            take_tail(shared, request.seconds, request.captures, percentile).await?;
        return written(move || tail_response(&profile, lost, format, request.all)).await;
    }
    let format = request.of_waits()?;
    let duration = checked_duration(request.seconds)?;
    let profile = shared.waits.record(duration, request.captures).await?;
    written(move || waits_response(&profile, format, request.all)).await
}

async fn await_pprof(shared: &Arc<Shared>, mut request: Request) -> Result<Answer, EndpointError> {
    request.format = request.format.or(Some(Format::Pprof));
    await_profile(shared, request).await
}

async fn last_await_profile(
    shared: &Arc<Shared>,
    request: Request,
) -> Result<Answer, EndpointError> {
    let format = request.of_waits()?;
    let profile = shared.waits.last.get().ok_or(EndpointError::NothingYet)?;
    written(move || waits_response(&profile, format, request.all)).await
}

/// An await profile as data, with what the rules find in it.
#[derive(Serialize)]
struct WithFindings {
    #[serde(flatten)]
    summary: Summary,
    findings: Vec<Finding>,
}

/// Returns what the rules find in an await profile alone.
fn findings(summary: &Summary) -> Vec<Finding> {
    Report::of_requests(summary.clone().into_requests(), summary.seconds)
}

fn recent_waits(shared: &Shared) -> Result<Answer, EndpointError> {
    Answer::json(&Recent::new(&shared.waits.recent()?))
}

fn waits_response(profile: &Profile, format: Format, all: bool) -> Result<Answer, EndpointError> {
    let frames = if all { Frames::All } else { Frames::Own };
    let answer = match format {
        Format::Folded => {
            let folded = profile.folded(frames);
            if folded.is_empty() {
                return Err(EndpointError::NoRequests(why_empty(profile)));
            }
            Answer::text(printable(&folded))
        }
        Format::Json => {
            let summary = profile.summary();
            let findings = findings(&summary);
            Answer::json(&WithFindings { summary, findings })?
        }
        Format::Pprof => Answer::attachment("await.pb.gz", profile.pprof(frames)),
        Format::Svg => Answer::svg(drawn_waits(profile, frames)?),
    };
    let answer = answer.with_samples(profile.summary().samples.of_requests());
    Ok(answer.noted(missing_names::in_waits(profile)))
}

fn tail_response(
    profile: &Profile,
    lost: Option<f64>,
    format: Format,
    all: bool,
) -> Result<Answer, EndpointError> {
    let frames = if all { Frames::All } else { Frames::Own };
    let answer = match format {
        Format::Svg => Answer::svg(tail::drawn(profile, frames)?),
        Format::Json => return Answer::json(&tail::with_text(profile, lost)?),
        Format::Folded | Format::Pprof => Answer::text(printable(&tail::folded(profile, frames)?)),
    };
    Ok(answer.noted(Some(&tail::left_out(profile)?)))
}

/// Takes a tail profile, and the share of the CPU time that the process wanted and other programs had meanwhile.
async fn take_tail(
    shared: &Shared,
    seconds: f64,
    captures: Option<u32>,
    percentile: Percentile,
) -> Result<(Arc<Profile>, Option<f64>), EndpointError> {
    let neighbours = Neighbours::begin(Process::this());
    let waits = shared
        .waits
        .record_tail(checked_duration(seconds)?, captures, percentile);
    let profile = waits.await?;
    Ok((
        profile,
        neighbours.and_then(|neighbours| neighbours.cpu_lost()),
    ))
}

fn tail_in_words(
    profile: &Profile,
    lost: Option<f64>,
    format: Option<LookFormat>,
) -> Result<Answer, EndpointError> {
    let tail = tail::with_text(profile, lost)?;
    match format {
        None => Ok(Answer::text(printable(&tail.text))),
        Some(_) => Answer::json(&tail),
    }
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
    let findings = findings(&profile.summary());
    let legend = findings.into_iter().map(|finding| finding.says);
    let options = FlamegraphOptions::default()
        .frames(frames)
        .legend(legend.collect());
    profile.flamegraph(&options).map_err(|error| match error {
        FlamegraphError::Empty => EndpointError::NoRequests(why_empty(profile)),
        other => EndpointError::failed(other),
    })
}

#[cfg(not(feature = "flamegraph"))]
fn drawn_waits(_: &Profile, _: Frames) -> Result<String, EndpointError> {
    drawable(Format::Svg).map(|_| String::new())
}

async fn threads(shared: &Arc<Shared>, request: Request) -> Result<Answer, EndpointError> {
    let format = request.of_threads()?;
    let duration = checked_duration(request.seconds)?;
    let profile = shared
        .threads
        .record_within(Duration::ZERO, duration)
        .await?;
    written(move || threads_response(&profile, format, &request)).await
}

async fn last_threads(shared: &Arc<Shared>, request: Request) -> Result<Answer, EndpointError> {
    let format = request.of_threads()?;
    let profile = shared.threads.last.get().ok_or(EndpointError::NothingYet)?;
    written(move || threads_response(&profile, format, &request)).await
}

fn threads_response(
    profile: &ThreadProfile,
    format: Format,
    request: &Request,
) -> Result<Answer, EndpointError> {
    let (idle, all) = (request.idle, request.all);
    let samples = thread_flamegraph::samples(&profile.folded(idle, all));
    let answer = match format {
        Format::Svg => Answer::svg(thread_flamegraph::draw(profile, idle, all)?),
        Format::Json => Answer::json(profile)?,
        Format::Folded | Format::Pprof => Answer::text(printable(&profile.folded(idle, all))),
    };
    Ok(answer.with_samples(samples).noted(profile.note()))
}

async fn all_tasks(request: tasks::Request) -> Result<Answer, EndpointError> {
    tasks::answer(request).await
}

async fn heap_profile(request: Request) -> Result<Answer, EndpointError> {
    let json = heap_profile::record(checked_duration(request.seconds)?).await?;
    Ok(Answer::attachment("dhat-heap.json", json))
}

async fn heap_in_use() -> Result<Answer, EndpointError> {
    written(|| Ok(Answer::attachment("heap.pb.gz", jemalloc::in_use()?))).await
}
