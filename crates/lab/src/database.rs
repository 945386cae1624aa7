//! The stand-in for a database: a call that takes a while and uses no CPU.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::counters::Counters;

tokio::task_local! {
    /// When the request came that this task answers, until it first reaches the database.
    static CAME: Cell<Option<Instant>>;
}

/// A request's future, whose first call or change knows for how long it has waited.
pub(crate) fn of_request<F: Future>(request: F) -> impl Future<Output = F::Output> {
    CAME.scope(Cell::new(Some(Instant::now())), request)
}

/// A database as a service sees it: a round trip during which the task waits.
///
/// It counts its calls, in flight and in total: what a chapter claims about concurrency is read
/// off these counters, which no noise can touch. It also counts the requests that came long before their
/// call. Clones are cheap and count together.
#[derive(Debug, Clone)]
pub struct Database {
    round_trip: Duration,
    counters: Arc<Counters>,
}

impl Database {
    pub(crate) fn new(round_trip: Duration, counters: Arc<Counters>) -> Self {
        Self {
            round_trip,
            counters,
        }
    }

    /// Waits one round trip.
    ///
    /// Cancelling the future (a client that hangs up) ends the call.
    pub async fn call(&self) {
        self.note_wait();
        let _call = self.counters.enter_database();
        tokio::time::sleep(self.round_trip).await;
    }

    /// Queues a change to be written, in the order of these calls. Does not wait.
    ///
    /// What it counts is how many calls were under way at that moment: where a change and a call
    /// exclude each other, there are none.
    pub fn record(&self) {
        self.note_wait();
        self.counters.note_record();
    }

    /// Whoever waits for another one's call waits for half of it on average. For how long a request
    /// waited that calls from a task of its own is not known.
    fn note_wait(&self) {
        let came = CAME.try_with(Cell::take).ok().flatten();
        if came.is_some_and(|came| came.elapsed() > self.round_trip / 2) {
            self.counters.note_held_up();
        }
    }
}
