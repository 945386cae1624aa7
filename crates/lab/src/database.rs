//! The stand-in for a database: a call that takes a while and uses no CPU, and a log of what was
//! recorded.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Serialize;

use crate::counters::Counters;
use crate::locked;

/// Changes that the log holds. Older ones go.
const LOG_LENGTH: usize = 10_000;

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
        let _call = self.counters.database_calls.begin();
        tokio::time::sleep(self.round_trip).await;
    }

    /// Queues a change: the row with this number becomes `value`. The changes are made in the order of
    /// these calls, so that the last one of a row stays. Does not wait.
    ///
    /// The admin listener serves the latest changes in their order at `/debug/records`. `/metrics`
    /// tells how many calls were under way when a change was queued: where changes and calls exclude
    /// each other, none.
    pub fn record(&self, row: u64, value: impl Into<String>) {
        let now = self.counters.database_calls.running();
        let peak = &self.counters.database_calls_at_record_peak;
        peak.fetch_max(now, Relaxed);
        self.counters.records.push(Record {
            row,
            value: value.into(),
        });
    }
}

/// A change that was queued.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Record {
    row: u64,
    value: String,
}

/// The log of the changes, the newest last.
#[derive(Debug, Default)]
pub(crate) struct Records(Mutex<Log>);

#[derive(Debug, Default)]
struct Log {
    /// Those that have gone too.
    count: u64,
    latest: VecDeque<Record>,
}

impl Records {
    fn push(&self, record: Record) {
        let mut log = locked(&self.0);
        log.count += 1;
        if log.latest.len() == LOG_LENGTH {
            log.latest.pop_front();
        }
        log.latest.push_back(record);
    }

    pub(crate) fn count(&self) -> u64 {
        locked(&self.0).count
    }

    pub(crate) fn latest(&self) -> Vec<Record> {
        locked(&self.0).latest.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_has_the_latest_changes_in_their_order() {
        let counters = Arc::<Counters>::default();
        let database = Database::new(Duration::ZERO, Arc::clone(&counters));
        let changes = LOG_LENGTH as u64 + 3;
        (0..changes).for_each(|number| database.record(1, number.to_string()));
        let values: Vec<String> = counters
            .records
            .latest()
            .into_iter()
            .map(|record| record.value)
            .collect();
        let latest: Vec<String> = (3..changes).map(|number| number.to_string()).collect();
        assert_eq!(values, latest);
        assert_eq!(counters.records.count(), changes);
    }
}
