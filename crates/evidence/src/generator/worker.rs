//! One generator thread: its users on a runtime of their own, and what running them cost.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cpu_time::ThreadTime;
use tokio::runtime::{Builder, LocalOptions};

use super::record::Record;
use super::schedule::Schedule;
use super::user::{self, Script};
use super::{GeneratorError, request};
use crate::interrupt::Interrupt;
use crate::load::{Arrivals, Load};
use crate::processors;

/// When the parts of a load begin and end; the same for every thread.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timeline {
    /// The first user comes.
    pub(super) begin: Instant,
    /// All users have come; the warm-up begins.
    pub(super) all_here: Instant,
    /// Answers are recorded from here …
    pub(super) record_from: Instant,
    /// … to here.
    pub(super) end: Instant,
}

/// What the threads of one run share.
#[derive(Debug)]
pub(super) struct Shared<'r> {
    pub(super) target: SocketAddr,
    pub(super) load: &'r Load,
    pub(super) timeline: Timeline,
    pub(super) threads: usize,
    pub(super) interrupt: &'r Interrupt,
    /// Set when a thread failed: the others need not go on.
    pub(super) abandoned: AtomicBool,
    /// For the progress display, a few times a second.
    pub(super) completed: Vec<AtomicU64>,
    pub(super) failed: Vec<AtomicU64>,
}

/// What one thread has to tell.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) record: Record,
    /// Requests of the schedule that no user was free to send.
    pub(super) unsent: u64,
    pub(super) cost: Cost,
}

/// Processor time of one thread over the recorded span, as shares of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cost {
    pub(super) used: Option<f64>,
    /// Ready to run, but not running.
    pub(super) waited: Option<f64>,
}

/// How often a thread looks whether to stop, and tells how far it is.
const LOOK_AROUND: Duration = Duration::from_millis(50);

/// Runs the users whose number, modulo the number of threads, is `index`.
pub(super) fn run(
    shared: &Shared<'_>,
    index: usize,
    processor: Option<usize>,
) -> Result<Report, GeneratorError> {
    if let Some(processor) = processor {
        processors::pin_current_thread(&[processor])?;
    }
    let load = shared.load;
    let Timeline {
        record_from, end, ..
    } = shared.timeline;
    let schedule = match load.arrivals {
        Arrivals::Closed { .. } => None,
        Arrivals::Open { per_second } => {
            // The threads take turns: each has its share of the rate, one step after the other.
            let turn = Duration::from_secs_f64(index as f64 / per_second);
            let share = per_second / shared.threads as f64;
            Some(Rc::new(Schedule::new(
                shared.timeline.all_here + turn,
                share,
            )))
        }
    };
    let record = Record::new(record_from, end, load.time_out, schedule.is_some())
        .map_err(|error| GeneratorError::Thread(error.to_string()))?;
    let script = Rc::new(Script {
        target: shared.target,
        request: request::bytes(shared.target, load),
        answer: load.exchange.answer.clone().into_bytes(),
        keep_alive: load.keep_alive,
        time_out: load.time_out,
        record: RefCell::new(record),
    });
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())
        .map_err(|error| thread_error(&error))?;
    let cost = runtime.block_on(async {
        spawn_users(shared, index, &script, schedule.as_ref());
        if let Some(schedule) = schedule.clone() {
            tokio::task::spawn_local(async move { schedule.keep().await });
        }
        watch_until(shared, index, &script, record_from).await?;
        let before = Spent::now();
        watch_until(shared, index, &script, end).await?;
        Ok::<_, GeneratorError>(before.until_now())
    })?;
    let unsent = schedule.map_or(0, |schedule| schedule.waiting());
    // Drops every user in the middle of what it does: requests under way stay counted as such.
    drop(runtime);
    let script = Rc::into_inner(script)
        .ok_or_else(|| GeneratorError::Thread("a user outlived its runtime".to_owned()))?;
    Ok(Report {
        record: script.record.into_inner(),
        unsent,
        cost,
    })
}

fn spawn_users(
    shared: &Shared<'_>,
    index: usize,
    script: &Rc<Script>,
    schedule: Option<&Rc<Schedule>>,
) {
    let users = shared.load.users;
    let ramp = shared.timeline.all_here - shared.timeline.begin;
    for number in (0..users).skip(index).step_by(shared.threads) {
        let first = shared.timeline.begin + ramp.mul_f64(f64::from(number) / f64::from(users));
        let script = Rc::clone(script);
        match (shared.load.arrivals, schedule) {
            (Arrivals::Open { .. }, Some(schedule)) => {
                let schedule = Rc::clone(schedule);
                tokio::task::spawn_local(async move {
                    user::open_loop(&script, first, &schedule).await;
                });
            }
            (Arrivals::Closed { think }, _) => {
                tokio::task::spawn_local(async move {
                    user::closed_loop(&script, first, think).await;
                });
            }
            (Arrivals::Open { .. }, None) => {}
        }
    }
}

/// Lets the users run until `moment`.
async fn watch_until(
    shared: &Shared<'_>,
    index: usize,
    script: &Script,
    moment: Instant,
) -> Result<(), GeneratorError> {
    loop {
        if shared.interrupt.is_set() || shared.abandoned.load(Ordering::Relaxed) {
            return Err(GeneratorError::Interrupted);
        }
        {
            let record = script.record.borrow();
            shared.completed[index].store(record.completions.count, Ordering::Relaxed);
            let failed = record.failure_count() + record.wrong_answers;
            shared.failed[index].store(failed, Ordering::Relaxed);
        }
        let now = Instant::now();
        if now >= moment {
            return Ok(());
        }
        tokio::time::sleep_until(moment.min(now + LOOK_AROUND).into()).await;
    }
}

/// What the calling thread has used up to now.
struct Spent {
    at: Instant,
    used: Option<ThreadTime>,
    waited: Option<Duration>,
}

impl Spent {
    fn now() -> Self {
        Self {
            at: Instant::now(),
            used: ThreadTime::try_now().ok(),
            waited: processors::waited_for_processor(),
        }
    }

    fn until_now(&self) -> Cost {
        let wall = self.at.elapsed().as_secs_f64();
        let used = self.used.and_then(|before| before.try_elapsed().ok());
        let waited = processors::waited_for_processor()
            .zip(self.waited)
            .map(|(now, before)| now.saturating_sub(before));
        Cost {
            used: used.map(|time| time.as_secs_f64() / wall),
            waited: waited.map(|time| time.as_secs_f64() / wall),
        }
    }
}

fn thread_error(error: &io::Error) -> GeneratorError {
    GeneratorError::Thread(error.to_string())
}
