//! The stand-in for a database: a call that takes a while and uses no CPU, and a log of the recorded
//! changes.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crate::counters::Counters;
use crate::records::Record;

/// A database as a service sees it: a round trip during which the task waits.
///
/// It counts its calls, in flight and in total. A chapter's claims about concurrency use these counters, which noise
/// cannot change. Clones are cheap and share their counters.
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
        let counters = &self.counters;
        let (_call, began) = (counters.database_calls.begin(), Instant::now());
        tokio::time::sleep(self.round_trip).await;
        let taken = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        counters.database_call_nanoseconds.fetch_add(taken, Relaxed);
        counters.whole_database_calls.fetch_add(1, Relaxed);
    }

    /// Counts a request as waiting for a connection, until what this returns is dropped.
    #[must_use = "it waits for no longer than this lives"]
    pub fn waiting(&self) -> impl Sized {
        self.counters.database_waits.begin()
    }

    /// Queues a change: the row with this number becomes `value`. The changes are made in the order of
    /// these calls, so that the last one of a row stays. Does not wait.
    ///
    /// The admin listener serves the latest changes in their order at `/debug/records`. `/metrics`
    /// reports how many calls were in flight when a change was queued. That number is 0 if changes
    /// and calls exclude each other.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::LOG_LENGTH;

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
