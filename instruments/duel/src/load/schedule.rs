//! The open loop's fixed schedule: which moment the next free user sends for.

use std::cell::Cell;
use std::io;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use super::alarm::Alarm;

/// One generator thread's requests, due at even steps whatever the answers do. A request that
/// is due while every user waits for an answer queues up here, and its latency counts on.
#[derive(Debug)]
pub(super) struct Schedule {
    start: Instant,
    /// Seconds between two requests of this thread.
    step: f64,
    /// How many requests users have taken up.
    taken: Cell<u64>,
    /// A permit a request that is due and not taken up.
    due: Semaphore,
}

impl Schedule {
    /// `per_second` requests per second, the first at `start`.
    pub(super) fn new(start: Instant, per_second: f64) -> Self {
        Self {
            start,
            step: 1.0 / per_second,
            taken: Cell::new(0),
            due: Semaphore::new(0),
        }
    }

    /// Waits until a request is due and nobody else takes it; the moment it was due at.
    pub(super) async fn next(&self) -> Instant {
        // The semaphore is never closed; were it, the request would be taken for due.
        if let Ok(permit) = self.due.acquire().await {
            permit.forget();
        }
        let index = self.taken.replace(self.taken.get() + 1);
        self.moment(index)
    }

    /// When those were due that no user was free to send by now.
    pub(super) fn overdue(&self) -> impl Iterator<Item = Instant> {
        let first = self.taken.get();
        let count = self.due.available_permits() as u64;
        (first..first + count).map(|index| self.moment(index))
    }

    /// Declares requests due as their moments come, for ever.
    pub(super) async fn keep(&self) -> io::Result<()> {
        let mut alarm = Alarm::new()?;
        let mut declared = 0;
        loop {
            alarm.at(self.moment(declared)).await?;
            let now = Instant::now();
            let mut more = 0;
            while self.moment(declared + more) <= now {
                more += 1;
            }
            declared += more;
            self.due
                .add_permits(usize::try_from(more).unwrap_or(usize::MAX));
            // After a hold-up every moment has passed already: let the users run, too.
            tokio::task::yield_now().await;
        }
    }

    fn moment(&self, index: u64) -> Instant {
        self.start + Duration::from_secs_f64(self.step * index as f64)
    }
}
