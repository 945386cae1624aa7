//! One generator thread: its users on a runtime of their own, and the cost of running them.

use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use children::cpus;
use tokio::runtime::{Builder, LocalOptions};

use super::error::GeneratorError;
use super::group::Group;
use super::record::Record;
use super::shared::{Shared, Timeline};
use super::user::Script;

use crate::load::cpu_time::{Cost, Spent};

/// The outcome of one thread.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) users: Record,
    /// Figures of the bystander, if the load has one.
    pub(super) bystander: Option<Record>,
    pub(super) cost: Cost,
}

/// Interval at which a thread checks whether to stop, and publishes its progress.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Interval at which a thread checks whether the last answers have come.
const LAST_LOOK_EVERY: Duration = Duration::from_millis(2);
/// Number of looks per publication of the latencies, because computing them takes some microseconds.
const LATENCIES_EVERY: u32 = 5;

/// Runs the users whose number, modulo the number of threads, is `index`.
pub(super) fn run(
    shared: &Shared<'_>,
    index: usize,
    cpu: Option<usize>,
) -> Result<Report, GeneratorError> {
    if let Some(cpu) = cpu {
        cpus::pin_current_thread(&[cpu])?;
    }
    let load = shared.load;
    let Timeline {
        record_from, end, ..
    } = shared.timeline;
    let users = Group::of_load(shared, index)?;
    let bystander = match &load.bystander {
        Some(bystander) => Some(Group::of_bystander(shared, index, bystander)?),
        None => None,
    };
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())
        .map_err(|error| thread_error(&error))?;
    let cost = runtime.block_on(async {
        users.spawn(shared, index);
        if let Some(bystander) = &bystander {
            bystander.spawn(shared, index);
        }
        watch_until(shared, index, &users.script, record_from).await?;
        let before = Spent::now();
        watch_until(shared, index, &users.script, end).await?;
        let cost = before.until_now();
        if let Some(bystander) = &bystander {
            wait_for_last_answers(shared, bystander).await?;
        }
        Ok::<_, GeneratorError>(cost)
    })?;
    // Drops every user in the middle of its work: requests under way stay counted as such.
    drop(runtime);
    Ok(Report {
        users: users.into_record()?,
        bystander: match bystander {
            Some(bystander) => Some(bystander.into_record()?),
            None => None,
        },
        cost,
    })
}

/// Lets the users run until `moment`.
async fn watch_until(
    shared: &Shared<'_>,
    index: usize,
    script: &Script,
    moment: Instant,
) -> Result<(), GeneratorError> {
    for look in 0_u32.. {
        if shared.interrupt.is_set() || shared.abandoned.load(Ordering::Relaxed) {
            return Err(GeneratorError::Interrupted);
        }
        {
            let record = script.record.borrow();
            shared.completed[index].store(record.completions.count, Ordering::Relaxed);
            let failed = record.failure_count() + record.wrong_answers;
            shared.failed[index].store(failed, Ordering::Relaxed);
            if look % LATENCIES_EVERY == 1
                && let Some((median, p99)) = record.so_far()
            {
                shared.median[index].store(median, Ordering::Relaxed);
                shared.p99[index].store(p99, Ordering::Relaxed);
            }
        }
        let now = Instant::now();
        if now >= moment {
            return Ok(());
        }
        tokio::time::sleep_until(moment.min(now + LOOK_EVERY).into()).await;
    }
    Ok(())
}

/// Lets the load go on until its bystander has the answers to the requests that were due in the recorded span, on all
/// threads. The users stay for so long, because without them the last requests would be the fastest.
async fn wait_for_last_answers(
    shared: &Shared<'_>,
    bystander: &Group,
) -> Result<(), GeneratorError> {
    let closes = shared.timeline.closes;
    let mut is_waiting = true;
    loop {
        if shared.interrupt.is_set() || shared.abandoned.load(Ordering::Relaxed) {
            return Err(GeneratorError::Interrupted);
        }
        if is_waiting && !bystander.is_waiting(shared) {
            is_waiting = false;
            shared.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        let now = Instant::now();
        if now >= closes || shared.waiting.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        tokio::time::sleep_until(closes.min(now + LAST_LOOK_EVERY).into()).await;
    }
}

fn thread_error(error: &io::Error) -> GeneratorError {
    GeneratorError::Thread(error.to_string())
}
