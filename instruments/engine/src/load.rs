//! The load generator: thousands of users on one core, every answer checked, its own cost
//! measured. HTTP is hyper's; users, their pace, latencies and faults are this crate's.
//!
//! A run has three parts. Users come one after the other (see [`ramp`]); then the load's warm-up; then
//! its duration, the only part that is recorded. Faults count in all three.
//!
//! Latency is the time from the moment a user wants an answer until it has read all of it. In an open loop that moment
//! is the schedule's. A server that stalls is thus charged for the requests that had to wait (corrected for coordinated
//! omission). Opening a connection is part of it, except for the first one of a user that keeps its connection.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use engine::load::{self, Settings, interrupt::Interrupt};
//! use engine::traffic::{Request, Route, Traffic};
//!
//! // A hundred users, who ask for `/read` again and again.
//! let load = Traffic {
//!     duration: Duration::from_secs(10),
//!     ..Traffic::closed([Route::of(Request::get("/read"), 1.0)], 100)
//! };
//! let server: std::net::SocketAddr = "127.0.0.1:8080".parse().expect("an address");
//! let outcome = load::run(server, &load, &Settings::of(&Interrupt::new()))?;
//! println!("{} a second", outcome.users.requests_per_second);
//! # Ok::<(), load::GeneratorError>(())
//! ```

mod alarm;
mod ask;
mod connection;
pub mod cpus;
mod error;
mod failure;
mod group;
pub mod interrupt;
mod latencies;
mod outcome;
mod rate;
mod record;
mod request;
mod schedule;
mod shared;
mod tally;
mod target;
#[cfg_attr(not(feature = "tls"), path = "load/no_tls.rs")]
mod tls;
mod user;
mod worker;

use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::load::cpus::allow_open_files;
use crate::load::interrupt::Interrupt;
use crate::outcome::{GeneratorFacts, GeneratorKind};
use crate::traffic::{Arrivals, Spacing, Traffic};
pub use ask::ask;
pub(crate) use ask::ask_for_all;
pub use error::GeneratorError;
pub use latencies::Latencies;
pub use outcome::{GroupOutcome, TrafficOutcome};
use record::Record;
pub use record::RouteLatencies;
pub use shared::Progress;
use shared::{Shared, Timeline};
pub use target::{Protocol, Target};
pub use tls::{Tls, TlsError};
use worker::Report;

/// Settings of a run, apart from the load itself.
#[derive(Clone, Copy)]
pub struct Settings<'s> {
    /// CPUs of the generator threads, one pinned thread each. Empty: one thread, not pinned.
    pub cpus: &'s [usize],
    /// Ends the run early when set.
    pub interrupt: &'s Interrupt,
    /// Called a few times a second, from the thread that called [`run`].
    pub progress: Option<&'s dyn Fn(Progress)>,
}

impl<'s> Settings<'s> {
    /// Returns settings for one thread on any CPU, without a progress display.
    pub fn of(interrupt: &'s Interrupt) -> Self {
        Self {
            cpus: &[],
            interrupt,
            progress: None,
        }
    }
}

/// Returns the time over which the users of `load` come. They spread over their think time, so that they do not come
/// back in one wave. At most ten thousand come per second: more would overrun the queue of connections that a server
/// has not accepted yet.
pub fn ramp(load: &Traffic) -> Duration {
    let connecting = Duration::from_micros(100) * load.users;
    match load.arrivals {
        Arrivals::Closed { think } => think.max(connecting),
        Arrivals::Open { .. } => connecting,
    }
}

/// Puts `load` on the server at `target` and returns its outcome, after the ramp, the warm-up and the duration have
/// passed.
///
/// # Errors
/// Returns an error if the load cannot be made at all. Failed requests are part of the outcome.
pub fn run(
    target: impl Into<Target>,
    load: &Traffic,
    settings: &Settings<'_>,
) -> Result<TrafficOutcome, GeneratorError> {
    check(load)?;
    let target = target.into();
    // Beside the connections: the bystanders', standard streams, event queues, and some to spare.
    allow_open_files(u64::from(load.users) + 128)?;
    TcpStream::connect_timeout(&target.address, Duration::from_secs(5)).map_err(|reason| {
        GeneratorError::Unreachable {
            target: target.address,
            reason,
        }
    })?;

    let threads = settings.cpus.len().clamp(1, load.users as usize);
    // The threads need a moment to start, so that the first users are not late.
    let begin = Instant::now() + Duration::from_millis(10);
    let all_here = begin + ramp(load);
    let record_from = all_here + load.warm_up;
    let shared = Shared {
        target,
        load,
        timeline: Timeline {
            begin,
            all_here,
            record_from,
            end: record_from + load.duration,
        },
        threads,
        interrupt: settings.interrupt,
        abandoned: AtomicBool::new(false),
        completed: (0..threads).map(|_| AtomicU64::new(0)).collect(),
        failed: (0..threads).map(|_| AtomicU64::new(0)).collect(),
        median: (0..threads).map(|_| AtomicU64::new(0)).collect(),
        p99: (0..threads).map(|_| AtomicU64::new(0)).collect(),
    };
    let reports = run_threads(&shared, settings)?;
    outcome(load, reports)
}

fn check(load: &Traffic) -> Result<(), GeneratorError> {
    let bystander = load.bystander.as_ref();
    let routes = load
        .routes
        .iter()
        .chain(bystander.map(|bystander| &bystander.route));
    let mut requests = routes.clone().flat_map(|route| &route.requests);
    let is_weight = |weight: f64| weight.is_finite() && weight >= 0.0;
    let own_rate = match load.arrivals {
        Arrivals::Open { per_second, .. } => Some(per_second),
        Arrivals::Closed { .. } => None,
    };
    let mut rates = own_rate
        .into_iter()
        .chain(bystander.map(|bystander| bystander.per_second));
    let faults = [
        (load.users == 0, "it has no users"),
        (load.duration.is_zero(), "its duration is zero"),
        (load.time_out.is_zero(), "its time-out is zero"),
        (
            load.routes.is_empty() || routes.clone().any(|route| route.requests.is_empty()),
            "it has no requests",
        ),
        (
            routes.clone().any(|route| !is_weight(route.weight)),
            "one of its weights is no number or below zero",
        ),
        (
            requests.clone().any(|one| !one.path.starts_with('/')),
            "its path does not start with /",
        ),
        (
            requests.any(|one| one.method == "HEAD"),
            "HEAD has no body to check",
        ),
        (
            !load.phases.is_empty() && own_rate.is_none(),
            "its phases need an open loop with a rate",
        ),
        (
            !load.phases.iter().all(|phase| {
                is_weight(phase.share)
                    && phase.share > 0.0
                    && is_weight(phase.seconds)
                    && phase.seconds > 0.0
            }),
            "one of its phases has a share or a length that is not above zero",
        ),
        (
            load.clients.is_some_and(|clients| {
                clients.give_up_after.is_zero() || clients.give_up_after >= load.time_out
            }),
            "its clients have to give up after more than zero and before the time-out",
        ),
        (
            load.clients
                .is_some_and(|clients| clients.retries.attempts == 0),
            "its clients make no attempt",
        ),
        (
            load.clients
                .and_then(|clients| clients.retries.budget)
                .is_some_and(|budget| !is_weight(budget)),
            "its retry budget is no number or below zero",
        ),
        (
            rates.any(|rate| !(rate.is_finite() && rate > 0.0)),
            "its rate is not above zero",
        ),
    ];
    let fault = faults.into_iter().find(|(is_so, _)| *is_so);
    fault.map_or(Ok(()), |(_, what)| Err(GeneratorError::Load(what)))
}

fn run_threads(
    shared: &Shared<'_>,
    settings: &Settings<'_>,
) -> Result<Vec<Report>, GeneratorError> {
    std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        for index in 0..shared.threads {
            let cpu = settings.cpus.get(index).copied();
            let sender = sender.clone();
            std::thread::Builder::new()
                .name(format!("generator-{index}"))
                .spawn_scoped(scope, move || {
                    let _ = sender.send(worker::run(shared, index, cpu));
                })
                .map_err(|error| GeneratorError::Thread(error.to_string()))?;
        }
        drop(sender);
        let mut reports = Vec::with_capacity(shared.threads);
        let mut failure = None;
        while reports.len() < shared.threads {
            match receiver.recv_timeout(Duration::from_millis(200)) {
                Ok(Ok(report)) => reports.push(report),
                Ok(Err(error)) => {
                    // The first failure is the cause; the others stop because of it.
                    shared.abandoned.store(true, Ordering::Relaxed);
                    failure.get_or_insert(error);
                }
                Err(RecvTimeoutError::Timeout) => {
                    if let Some(progress) = settings.progress {
                        progress(shared.progress());
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        match failure {
            Some(error) => Err(error),
            None if reports.len() < shared.threads => Err(GeneratorError::Thread(
                "it panicked; see the message above".to_owned(),
            )),
            None => Ok(reports),
        }
    })
}

fn outcome(load: &Traffic, reports: Vec<Report>) -> Result<TrafficOutcome, GeneratorError> {
    // A run is as bound as its busiest thread: the other threads cannot take over its users.
    let busiest = |share: fn(&Report) -> Option<f64>| {
        reports
            .iter()
            .map(share)
            .try_fold(0.0, |most: f64, share| Some(most.max(share?)))
    };
    let cpu_share = busiest(|report| report.cost.used);
    let waited_share = busiest(|report| report.cost.waited);
    let (users, bystanders): (Vec<Record>, Vec<Option<Record>>) = reports
        .into_iter()
        .map(|report| (report.users, report.bystander))
        .unzip();
    let all = merged(users).ok_or_else(|| GeneratorError::Thread("none was started".to_owned()))?;
    let seconds = load.duration.as_secs_f64();
    let beside = load.bystander.as_ref().map(|bystander| bystander.spacing);
    let arrivals = match load.arrivals {
        Arrivals::Open { spacing, .. } => Some(spacing),
        Arrivals::Closed { .. } => beside.filter(|spacing| *spacing == Spacing::Poisson),
    };
    Ok(TrafficOutcome {
        generator: GeneratorFacts {
            name: GeneratorKind::Embedded,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            cpu_share,
            waited_share,
            users: load.users,
            open_loop: matches!(load.arrivals, Arrivals::Open { .. }),
            arrivals,
        },
        seconds,
        users: GroupOutcome::of(all, seconds),
        bystander: merged(bystanders.into_iter().flatten())
            .map(|record| GroupOutcome::of(record, seconds)),
    })
}

fn merged(parts: impl IntoIterator<Item = Record>) -> Option<Record> {
    parts.into_iter().reduce(|mut all, part| {
        all.merge(part);
        all
    })
}
