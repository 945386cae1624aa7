//! The load generator: thousands of users on one core, every answer checked, its own cost
//! measured. HTTP is hyper's; users, their pace, latencies and faults are this crate's.
//!
//! A run has three parts. Users come one after the other (see [`ramp`]); then the load's warm-up; then
//! its duration, the only part that is recorded. Faults count in all three. Requests beside the load that are due before
//! its end get their answers: the load goes on for them, for at most a second.
//!
//! Latency is the time from the moment a user wants an answer until it has read all of it. In an open loop that moment
//! is the schedule's. A server that stalls is thus charged for the requests that had to wait (corrected for coordinated
//! omission). Opening a connection is part of it, except for the first one of a user that keeps its connection.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use children::Interrupt;
//! use engine::load::{self, Settings};
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
pub mod ask;
mod connection;
pub mod cpu_time;
mod error;
mod failure;
mod group;
mod latencies;
mod outcome;
mod pieces;
mod rate;
mod record;
mod request;
mod schedule;
mod shared;
mod stream;
mod tally;
mod target;
#[cfg_attr(not(feature = "tls"), path = "load/no_tls.rs")]
mod tls;
mod user;
mod worker;

use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use children::Interrupt;
use children::limits::allow_open_files;

use crate::outcome::{GeneratorFacts, GeneratorKind};
use crate::traffic::{Arrivals, Route, Spacing, Traffic};
pub use error::GeneratorError;
pub use latencies::Latencies;
pub use outcome::{GroupOutcome, TrafficOutcome};
pub use pieces::{Piece, Pieces};
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

/// Longest time for which a load goes on after its duration, for the last answers of its bystander.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

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
    let end = record_from + load.duration;
    // Phases and clients that give up are counted until the end of the load.
    let has_last_answers =
        load.bystander.is_some() && load.phases.is_empty() && load.clients.is_none();
    let shared = Shared {
        target,
        load,
        timeline: Timeline {
            begin,
            all_here,
            record_from,
            end,
            closes: if has_last_answers {
                end + LAST_ANSWERS
            } else {
                end
            },
        },
        threads,
        interrupt: settings.interrupt,
        abandoned: AtomicBool::new(false),
        completed: (0..threads).map(|_| AtomicU64::new(0)).collect(),
        failed: (0..threads).map(|_| AtomicU64::new(0)).collect(),
        waiting: AtomicUsize::new(threads),
        median: (0..threads).map(|_| AtomicU64::new(0)).collect(),
        p99: (0..threads).map(|_| AtomicU64::new(0)).collect(),
    };
    let reports = run_threads(&shared, settings)?;
    outcome(load, reports)
}

fn check(load: &Traffic) -> Result<(), GeneratorError> {
    match fault(load) {
        Some(what) => Err(GeneratorError::Load(what)),
        None => Ok(()),
    }
}

/// Returns the reason why nothing can send `load`, if there is one.
fn fault(load: &Traffic) -> Option<&'static str> {
    if load.users == 0 {
        return Some("it has no users");
    }
    if load.duration.is_zero() {
        return Some("its duration is zero");
    }
    if load.time_out.is_zero() {
        return Some("its time-out is zero");
    }
    if load.routes.is_empty() {
        return Some("it has no requests");
    }
    for route in &*load.routes {
        if let Some(fault) = fault_of_route(route) {
            return Some(fault);
        }
    }
    if let Some(bystander) = &load.bystander {
        if let Some(fault) = fault_of_route(&bystander.route) {
            return Some(fault);
        }
        if !is_positive(bystander.per_second) {
            return Some("its rate is not above zero");
        }
    }
    match load.arrivals {
        Arrivals::Open { per_second, .. } if !is_positive(per_second) => {
            return Some("its rate is not above zero");
        }
        Arrivals::Closed { .. } if !load.phases.is_empty() => {
            return Some("its phases need an open loop with a rate");
        }
        Arrivals::Open { .. } | Arrivals::Closed { .. } => {}
    }
    for phase in &*load.phases {
        if !is_positive(phase.share) || !is_positive(phase.seconds) {
            return Some("one of its phases has a share or a length that is not above zero");
        }
    }
    if let Some(clients) = load.clients {
        if clients.give_up_after.is_zero() || clients.give_up_after >= load.time_out {
            return Some(
                "its clients have to give up after more than zero and before the time-out",
            );
        }
        if clients.retries.attempts == 0 {
            return Some("its clients make no attempt");
        }
        if let Some(budget) = clients.retries.budget
            && !is_weight(budget)
        {
            return Some("its retry budget is no number or below zero");
        }
    }
    None
}

fn fault_of_route(route: &Route) -> Option<&'static str> {
    if route.requests.is_empty() {
        return Some("it has no requests");
    }
    if !is_weight(route.weight) {
        return Some("one of its weights is no number or below zero");
    }
    for request in &route.requests {
        if !request.path.starts_with('/') {
            return Some("its path does not start with /");
        }
        if request.method == "HEAD" {
            return Some("HEAD has no body to check");
        }
    }
    None
}

fn is_weight(number: f64) -> bool {
    number.is_finite() && number >= 0.0
}

fn is_positive(number: f64) -> bool {
    number.is_finite() && number > 0.0
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
    let (mut cpu_share, mut waited_share) = (Some(0.0), Some(0.0));
    let (mut users, mut bystander) = (None, None);
    for report in reports {
        cpu_share = larger(cpu_share, report.cost.used);
        waited_share = larger(waited_share, report.cost.waited);
        merge(&mut users, report.users);
        if let Some(record) = report.bystander {
            merge(&mut bystander, record);
        }
    }
    let Some(users) = users else {
        return Err(GeneratorError::Thread("none was started".to_owned()));
    };
    let seconds = load.duration.as_secs_f64();
    let arrivals = match (load.arrivals, &load.bystander) {
        (Arrivals::Open { spacing, .. }, _) => Some(spacing),
        (Arrivals::Closed { .. }, Some(beside)) if beside.spacing == Spacing::Poisson => {
            Some(Spacing::Poisson)
        }
        (Arrivals::Closed { .. }, _) => None,
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
        users: GroupOutcome::of(users, seconds),
        bystander: bystander.map(|record| GroupOutcome::of(record, seconds)),
    })
}

/// Returns the larger share; `None` if one of them is unknown.
fn larger(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    Some(one?.max(other?))
}

fn merge(all: &mut Option<Record>, part: Record) {
    match all {
        Some(all) => all.merge(part),
        None => *all = Some(part),
    }
}
