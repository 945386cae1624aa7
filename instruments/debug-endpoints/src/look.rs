//! All instruments for some seconds at once, and what they say together.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use await_profile::{Profile, Remark, RouteSummary, Share, Summary, WaitKind};
use cpu_time::ProcessTime;
use diagnosis::Finding;
use serde::Serialize;

use crate::error::EndpointError;
use crate::heartbeat::{self, Heartbeat};
use crate::memory::{self, Memory};
use crate::shared::Shared;
use crate::sockets::{self, Sockets};
use crate::threads::ThreadProfile;

/// At most so many causes are told.
const MOST_FINDINGS: usize = 4;
/// And so many places where requests spend their time.
const MOST_PLACES: usize = 2;
/// A wait is a cause if so much of a route's time goes there.
const MUCH: f64 = 0.4;
/// Of waits that may be on purpose, such as for a permit.
const MOST_OF_IT: f64 = 0.6;
/// Of fewer requests at once, on average, hardly one waits for another.
const AT_ONCE: f64 = 1.0;
/// Of a wait that is so much of a route, nobody is past it.
const ALL: f64 = 0.98;
/// Nobody minds a wait of fewer milliseconds.
const LEAST_MS: f64 = 1.0;
/// CPUs that are used for so much of the time are the limit.
const BUSY: f64 = 0.9;
/// More workers than so many for each CPU are more than some blocking calls explain.
const MANY_WORKERS: usize = 4;
/// So many requests at once on an HTTP/2 connection may have to queue for it.
const MANY_STREAMS: f64 = 6.0;

/// What all instruments say together.
#[derive(Debug, Serialize)]
pub(crate) struct Look {
    seconds: f64,
    /// Requests that finished meanwhile.
    finished: u64,
    /// Requests in flight, averaged over time.
    in_flight: f64,
    /// The mean time that a request took in the service.
    latency_ms: Option<f64>,
    /// CPUs that the process kept busy, and that there are.
    cpus_used: f64,
    cpus: usize,
    /// Whether they had next to nothing left to give.
    is_cpu_limit: bool,
    /// Where threads compute most, with the share of all computing, if the CPUs are the limit.
    computing: Option<String>,
    /// Threads of its runtimes that run tasks.
    workers: usize,
    /// The most likely cause first; empty if nothing was found.
    findings: Vec<Finding>,
    /// Limits and full queues that most requests of a route wait for: on purpose, or too small.
    bounds: Vec<Finding>,
    /// What else most of a request's time goes to, in this service or in its database; what keeps that is not seen.
    waits: Vec<Finding>,
    /// Where requests spend their time, which need not be wrong.
    spent: Vec<String>,
    /// What was not seen, and why.
    not_seen: Vec<String>,
}

/// A look as data, and the same for people.
#[derive(Debug, Serialize)]
pub(crate) struct WithText {
    #[serde(flatten)]
    look: Look,
    text: String,
}

impl Look {
    pub(crate) fn with_text(self) -> WithText {
        let text = self.to_string();
        WithText { look: self, text }
    }
}

/// What the instruments saw. One that is in use, or that this system does not have, is left out and named.
pub(crate) struct Evidence {
    duration: Duration,
    cpu_time: Duration,
    waits: Option<Arc<Profile>>,
    threads: Option<Arc<ThreadProfile>>,
    heartbeat: Option<Heartbeat>,
    memory: Option<Memory>,
    sockets: Option<Sockets>,
    not_seen: Vec<String>,
}

impl Evidence {
    /// Asks all instruments for `duration`.
    pub(crate) async fn take(shared: &Shared, duration: Duration) -> Self {
        let before = ProcessTime::now();
        let runtimes = || shared.runtimes.all();
        let (waits, threads, heartbeat, memory, sockets) = tokio::join!(
            shared.waits.record(duration, None),
            shared.threads.record(duration),
            heartbeat::watch(runtimes(), duration),
            memory::watch(runtimes(), duration),
            sockets::watch(duration),
        );
        let cpu_time = before.elapsed();
        let mut not_seen = Vec::new();
        Self {
            duration,
            cpu_time,
            waits: told("await profile", waits, &mut not_seen),
            threads: told("threads", threads, &mut not_seen),
            heartbeat: told("heartbeat", heartbeat, &mut not_seen),
            memory: told("memory", memory, &mut not_seen),
            sockets: told("sockets", sockets, &mut not_seen),
            not_seen,
        }
    }

    /// What they say together. Adds up many stacks, which takes its time.
    pub(crate) fn judge(self) -> Look {
        let (threads, sockets) = (self.threads.as_deref(), self.sockets.as_ref());
        let mut not_seen = self.not_seen;
        not_seen.extend(threads.and_then(ThreadProfile::note).map(str::to_owned));
        not_seen.extend(self.heartbeat.as_ref().and_then(Heartbeat::not_watched));

        let summary = self.waits.map(|profile| profile.summary());
        let summary = summary.as_ref();
        let finished = summary.map_or(0, |summary| summary.finished);
        let mut findings = Vec::new();
        if let Some(heartbeat) = &self.heartbeat {
            findings.extend(of_runtimes(heartbeat, threads));
        }
        let mut waits = Vec::new();
        if let Some(summary) = summary {
            for remark in &summary.remarks {
                match of_wait(summary, remark, sockets) {
                    Some(finding) => findings.push(finding),
                    None => waits.extend(elsewhere(summary, remark)),
                }
            }
        }
        if let Some(memory) = &self.memory {
            findings.extend(memory.findings());
        }
        if let Some(sockets) = sockets {
            findings.extend(sockets.findings(finished));
        }
        findings.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        let kinds = [WaitKind::Limit, WaitKind::Queue].map(WaitKind::name);
        let is_bound = |finding: &Finding| kinds.contains(&finding.kind);
        let (bounds, mut findings): (Vec<_>, Vec<_>) = findings.into_iter().partition(is_bound);
        findings.truncate(MOST_FINDINGS);
        if !findings.is_empty() {
            // What threads do is told by a finding.
            let kinds = [WaitKind::Running, WaitKind::Ready].map(WaitKind::name);
            waits.retain(|wait| !kinds.contains(&wait.kind));
        }
        let seconds = self.duration.as_secs_f64();
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let cpus_used = self.cpu_time.as_secs_f64() / seconds;
        let is_cpu_limit = cpus_used >= BUSY * cpus as f64;
        let pulses = self.heartbeat.iter().flat_map(|beat| &beat.runtimes);
        Look {
            seconds,
            finished,
            in_flight: summary.map_or(0.0, |summary| summary.mean_in_flight),
            latency_ms: summary.and_then(|summary| summary.mean_latency_ms),
            cpus_used,
            cpus,
            is_cpu_limit,
            computing: threads
                .filter(|_| is_cpu_limit)
                .and_then(ThreadProfile::computing),
            workers: pulses.map(|pulse| pulse.held_worst.len()).sum(),
            findings,
            bounds,
            waits,
            spent: summary.map_or_else(Vec::new, |summary| spent(&summary.places)),
            not_seen,
        }
    }
}

fn told<T>(name: &str, told: Result<T, EndpointError>, not_seen: &mut Vec<String>) -> Option<T> {
    told.map_err(|why| not_seen.push(format!("{name}: {why}")))
        .ok()
}

/// Threads that are blocked or compute, and blocking pools that are full.
fn of_runtimes(heartbeat: &Heartbeat, threads: Option<&ThreadProfile>) -> Vec<Finding> {
    let Some(threads) = threads else {
        let late = f64::from(heartbeat.latest.late_p99);
        let is_late = late >= 0.05 || heartbeat.latest.unanswered >= 0.1;
        let says = format!(
            "A task of the runtime {} began up to {late:.2} s late: something blocks or keeps its threads.",
            heartbeat.latest.runtime
        );
        let finding = Finding::new("late", 0.9, "/debug/heartbeat", says);
        return is_late.then_some(finding).into_iter().collect();
    };
    let held = heartbeat
        .runtimes
        .iter()
        .flat_map(|pulse| &pulse.held_worst);
    let mut findings = threads.findings(held.copied().fold(0.0, f64::max));
    for pulse in &heartbeat.runtimes {
        let waited = f64::from(pulse.blocking_wait_worst).max(pulse.blocking_unanswered);
        let is_usual = pulse.blocking_wait_p50 >= 0.005 || pulse.blocking_unanswered >= 0.2;
        if waited < 0.05 || !is_usual {
            continue;
        }
        let at_work = threads.at_work_on_blocking_threads();
        let says = format!(
            "The blocking pool of the runtime {} is full: a job waited {:.0} ms for a thread, and so do `spawn_blocking`, \
             `tokio::fs` and name lookups.{} Bound those jobs by a semaphore of their own, or make them shorter, before \
             you blame the disk.",
            pulse.runtime,
            waited * 1e3,
            at_work.map_or_else(String::new, |place| format!(" Its threads are at {place}.")),
        );
        findings.push(Finding::new(
            "full_blocking_pool",
            1.7,
            "/debug/threads",
            says,
        ));
    }
    findings
}

/// What a remark on the waits of requests says of a cause.
fn of_wait(summary: &Summary, remark: &Remark, sockets: Option<&Sockets>) -> Option<Finding> {
    if is_stuck(summary, remark) {
        let says = format!(
            "{} No request of this route finished meanwhile, and none is past this wait: what they wait for may never be \
             given back. Look for a permit or a connection that is forgotten on some way out, for a guard in a future \
             that nobody polls any more, and for two that wait for each other.",
            remark.says
        );
        return Some(Finding::new("stuck", 1.9, "/debug/await", says));
    }
    let (kind, weight) = of_remark(remark, sockets)?;
    let more = if kind == WaitKind::AnswerOrStream.name() {
        let open = connections(sockets);
        Some(format!(" Connections to other services: {open}."))
    } else if let Some(past) = past(&summary.places, remark) {
        Some(format!(" Requests that are past it are at {past}."))
    } else {
        let says =
            " No request is past it: what holds it is outside of requests, or was forgotten.";
        (is_of_holders(remark) && remark.share >= ALL).then(|| says.to_owned())
    };
    let says = remark.says.clone() + &more.unwrap_or_default();
    Some(Finding::new(kind, weight, "/debug/await", says))
}

/// The route that a remark is about.
fn route_of<'a>(summary: &'a Summary, remark: &Remark) -> Option<&'a RouteSummary> {
    let mut routes = summary.routes.iter();
    routes.find(|route| route.route == remark.route)
}

/// Whether one waits until another gives something back.
fn is_of_holders(remark: &Remark) -> bool {
    use WaitKind::{Limit, Lock, Pool};
    let kind = remark.wait.map(|wait| wait.kind);
    matches!(kind, Some(Limit | Lock | Pool))
}

/// Whether all requests of a route wait for each other, or for what nobody has.
fn is_stuck(summary: &Summary, remark: &Remark) -> bool {
    let of_queue = remark.wait.is_some_and(|wait| wait.kind == WaitKind::Queue);
    if !is_of_holders(remark) && !of_queue || remark.share < MUCH {
        return false;
    }
    let Some(route) = route_of(summary, remark) else {
        return false;
    };
    // Two tasks whose channels are full wait for each other with the answers that requests wait for.
    let waits = |place: &&Share| {
        place.wait.is_some_and(|wait| {
            use WaitKind::{Channel, Limit, Lock, Pool, Queue};
            matches!(wait.kind, Limit | Lock | Pool | Queue) || of_queue && wait.kind == Channel
        })
    };
    let places = summary.places.iter();
    let of_route = places.filter(|place| place.frames.first() == Some(&remark.route));
    let waiting: f64 = of_route.filter(waits).map(|place| place.share).sum();
    route.finished == 0 && route.mean_in_flight >= AT_ONCE && waiting >= ALL * route.share
}

/// A wait that is no fault by itself, and that most of a route's time goes to: who asks why has to go on there.
fn elsewhere(summary: &Summary, remark: &Remark) -> Option<Finding> {
    use WaitKind::{
        BlockingPool, Channel, Database, Notification, Queue, Ready, Running, Set, Task, Timer,
    };
    let kind = remark.wait?.kind;
    let is_inside = matches!(
        kind,
        BlockingPool
            | Channel
            | Database
            | Notification
            | Queue
            | Ready
            | Running
            | Set
            | Task
            | Timer
    );
    let route = route_of(summary, remark)?;
    let is_short = route
        .latency_ms
        .is_some_and(|ms| ms * remark.share < LEAST_MS);
    let is_told = is_inside && !is_short && remark.share >= MUCH;
    is_told.then(|| Finding::new(kind.name(), 0.0, "/debug/await", remark.says.clone()))
}

/// Where requests of this route are that do not wait so: of a lock or a pool they are its holders.
fn past(places: &[Share], remark: &Remark) -> Option<String> {
    let wait = remark.wait?;
    let is_past = |place: &&Share| {
        let is_here = place.wait.is_some_and(|other| other.what == wait.what);
        place.frames.first() == Some(&remark.route) && place.frames.len() > 2 && !is_here
    };
    let place = places.iter().find(is_past)?;
    Some(place.frames[1..].join("; "))
}

fn connections(sockets: Option<&Sockets>) -> usize {
    sockets.map_or(1, Sockets::open_to_upstreams).max(1)
}

/// Whether what is waited for is a cause, and how likely.
fn of_remark(remark: &Remark, sockets: Option<&Sockets>) -> Option<(&'static str, f64)> {
    let Some(wait) = remark.wait else {
        return Some(("unpolled", 1.8));
    };
    let queues =
        || remark.mean_in_flight.unwrap_or_default() / connections(sockets) as f64 >= MANY_STREAMS;
    if remark.in_a_row.is_some() && remark.share >= MUCH {
        return Some(("in_a_row", 0.9 + remark.share / 2.0));
    }
    let is_queue = remark.mean_in_flight.unwrap_or_default() >= AT_ONCE;
    let (is_cause, weight) = match wait.kind {
        WaitKind::Lock | WaitKind::Pool => (remark.share >= MUCH && is_queue, 1.0),
        WaitKind::NewConnection => (remark.share >= MUCH, 1.0),
        // What has no such sentence is an ordinary query.
        WaitKind::Database => (remark.share >= MUCH && wait.what.starts_with('('), 1.0),
        WaitKind::Limit | WaitKind::Queue => (remark.share >= MOST_OF_IT, 0.9),
        WaitKind::AnswerOrStream => (remark.share >= MUCH && queues(), 0.5),
        WaitKind::Client => (remark.share >= MOST_OF_IT, 0.2),
        _ => (false, 0.0),
    };
    is_cause.then(|| (wait.kind.name(), weight + remark.share / 2.0))
}

/// Where most requests are.
fn spent(places: &[Share]) -> Vec<String> {
    let places = places.iter();
    let places = places.filter(|place| place.share >= 0.1).take(MOST_PLACES);
    let place = places.map(|place| {
        let time = place
            .ms_per_request
            .map_or_else(String::new, |ms| format!(", {ms:.1} ms each"));
        format!(
            "{:.0} % of the requests in flight are in {}{time}",
            place.share * 100.0,
            place.frames.join("; ")
        )
    });
    place.collect()
}

impl fmt::Display for Look {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each = self
            .latency_ms
            .map_or_else(String::new, |ms| format!(", {ms:.1} ms each in here"));
        writeln!(
            f,
            "In {:.0} s {} requests finished{each}, {:.1} at once; {:.2} of {} CPUs used.",
            self.seconds, self.finished, self.in_flight, self.cpus_used, self.cpus
        )?;
        for (number, finding) in (1..).zip(&self.findings) {
            writeln!(f, "{number}. {} [{}]", finding.says, finding.see)?;
        }
        if self.findings.is_empty() {
            let asked = self.finished > 0 || self.in_flight > 0.0;
            let says = if asked && !self.bounds.is_empty() {
                "Requests wait at a bound: it is too small, or those past it do more than they have to, or it is on purpose."
            } else if asked && self.is_cpu_limit {
                "No wait holds requests up: they take turns on the CPU."
            } else if asked && !self.waits.is_empty() {
                "No fault stands out. Most of a request's time goes to what follows, in this service or its database: find \
                 out what keeps that, before you look elsewhere."
            } else if asked {
                "Nothing in this service holds requests up. If its clients wait longer, look outside of it: the other \
                 services that it waits for, the network, a proxy, the clients themselves."
            } else {
                "No request came by: put load on the service, and look again."
            };
            writeln!(f, "{says}")?;
        }
        if self.is_cpu_limit {
            write!(f, "The CPU is a limit.")?;
            if let Some(places) = &self.computing {
                write!(f, " Of what threads compute, {places}.")?;
            }
            write!(f, " All of it is in /debug/pprof/flamegraph.")?;
            if self.workers >= MANY_WORKERS * self.cpus {
                write!(
                    f,
                    " {} workers share {}: more than it can run, each with an arena of the allocator; as many as there \
                     are CPUs is the default.",
                    self.workers,
                    match self.cpus {
                        1 => "1 CPU".to_owned(),
                        cpus => format!("{cpus} CPUs"),
                    }
                )?;
            }
            writeln!(f)?;
        }
        for bound in &self.bounds {
            writeln!(f, "Bound: {} [{}]", bound.says, bound.see)?;
        }
        for wait in &self.waits {
            writeln!(f, "Wait: {} [{}]", wait.says, wait.see)?;
        }
        for spent in &self.spent {
            writeln!(f, "{spent}.")?;
        }
        for not_seen in &self.not_seen {
            writeln!(f, "Not seen: {not_seen}")?;
        }
        Ok(())
    }
}
