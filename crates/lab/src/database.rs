//! The stand-in for a database: a call that takes a while and uses no CPU.

use std::sync::Arc;
use std::time::Duration;

use crate::counters::Counters;

/// A database as a service sees it: a round trip during which the task waits.
///
/// It counts its calls, in flight and in total: what a chapter claims about concurrency is read
/// off these counters, which no noise can touch. Clones are cheap and count together.
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
        let _call = self.counters.enter_database();
        tokio::time::sleep(self.round_trip).await;
    }

    /// Queues a change to be written, in the order of these calls. Does not wait.
    ///
    /// What it counts is how many calls were under way at that moment: where a change and a call
    /// exclude each other, there are none.
    pub fn record(&self) {
        self.counters.note_record();
    }
}
