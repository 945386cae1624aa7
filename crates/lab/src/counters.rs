//! Counters of a server while it serves.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::metric::Metric;
use crate::pool_use::PoolUse;
use crate::records::Records;

/// Counters that the hot path adds to: each is a relaxed atomic, but for the records.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) requests: Activity,
    /// Successful answers to clients who were still there.
    pub(crate) answers: AtomicU64,
    pub(crate) connections: Activity,
    pub(crate) database_calls: Activity,
    /// Requests that wait for a connection to the database.
    pub(crate) database_waits: Activity,
    /// Calls that were not cut off, and the sum of their lengths.
    pub(crate) whole_database_calls: AtomicU64,
    pub(crate) database_call_nanoseconds: AtomicU64,
    pub(crate) records: Records,
    pub(crate) database_calls_at_record_peak: AtomicU64,
    pub(crate) upstream_connections: AtomicU64,
    pub(crate) upstream_requests: Activity,
    pub(crate) upstream_body_bytes: AtomicU64,
    pub(crate) archive_calls: AtomicU64,
    pub(crate) archive_bytes_received: AtomicU64,
    pub(crate) archive_bytes_sent: AtomicU64,
    pub(crate) work: Activity,
    pub(crate) work_nanoseconds: AtomicU64,
    /// Use of the connection pool, in a chapter that has one.
    pub(crate) pool: OnceLock<PoolUse>,
}

/// Something that begins and ends: how often it has begun, how many go on now, and the most at once.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    begun: AtomicU64,
    running: AtomicU64,
    peak: AtomicU64,
}

/// One of an activity. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Running<'a>(&'a Activity);

impl Activity {
    pub(crate) fn begin(&self) -> Running<'_> {
        self.begun.fetch_add(1, Relaxed);
        let running = self.running.fetch_add(1, Relaxed) + 1;
        self.peak.fetch_max(running, Relaxed);
        Running(self)
    }

    pub(crate) fn begun(&self) -> u64 {
        self.begun.load(Relaxed)
    }

    pub(crate) fn ended(&self) -> u64 {
        // In this order, so that what begins meanwhile has not ended.
        let running = self.running();
        self.begun().saturating_sub(running)
    }

    pub(crate) fn running(&self) -> u64 {
        self.running.load(Relaxed)
    }

    pub(crate) fn peak(&self) -> u64 {
        self.peak.load(Relaxed)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Relaxed);
    }
}

impl Counters {
    /// Returns how many of the upstream's bodies went through the archive: its bytes, divided by a body's mean length.
    /// A byte counts when it was both stored and read back.
    fn bodies_kept(&self) -> u64 {
        let received = self.archive_bytes_received.load(Relaxed);
        let kept = received.min(self.archive_bytes_sent.load(Relaxed));
        let bodies = u128::from(self.upstream_requests.begun());
        let sent = u128::from(self.upstream_body_bytes.load(Relaxed).max(1));
        let kept = u128::from(kept) * bodies / sent;
        u64::try_from(kept).unwrap_or(u64::MAX)
    }

    /// `cpus` are those that the process might use when it started.
    pub(crate) fn metrics(&self, cpus: usize) -> Vec<Metric> {
        let Self {
            requests,
            connections,
            database_calls: calls,
            work,
            ..
        } = self;
        vec![
            Metric::counter("http_requests_total", "Requests received", requests.begun()),
            Metric::counter(
                "http_answers_total",
                "Successful answers to clients who were still there",
                self.answers.load(Relaxed),
            ),
            Metric::counter(
                "connections_total",
                "Connections accepted",
                connections.begun(),
            ),
            Metric::counter(
                "connections_finished_total",
                "Connections that have ended",
                connections.ended(),
            ),
            Metric::counter(
                "database_calls_total",
                "Calls begun on the database",
                calls.begun(),
            ),
            Metric::count(
                "database_calls_in_flight",
                "Calls inside the database now",
                calls.running(),
            ),
            Metric::count(
                "database_calls_in_flight_peak",
                "Most calls inside the database at once since the start",
                calls.peak(),
            ),
            Metric::count(
                "database_waiting",
                "Requests that wait for a connection to the database now",
                self.database_waits.running(),
            ),
            Metric::counter(
                "whole_database_calls_total",
                "Calls that ended by themselves: none cut them off",
                self.whole_database_calls.load(Relaxed),
            ),
            Metric::gauge(
                "database_call_seconds",
                "How long a call takes inside the database, on average",
                self.database_call_nanoseconds.load(Relaxed) as f64
                    / 1e9
                    / at_least_one(&self.whole_database_calls),
            ),
            Metric::gauge(
                "database_calls_per_answer",
                "Calls that have ended or were cut off, for each successful answer to a client who was still there",
                calls.ended() as f64 / at_least_one(&self.answers),
            ),
            Metric::counter(
                "database_records_total",
                "Changes queued for the database",
                self.records.count(),
            ),
            Metric::count(
                "database_calls_in_flight_at_record_peak",
                "Most calls inside the database at the moment of a change since the start",
                self.database_calls_at_record_peak.load(Relaxed),
            ),
            Metric::counter(
                "work_runs_total",
                "Pieces of CPU work that were done",
                work.ended(),
            ),
            Metric::count(
                "work_running_peak",
                "Most pieces of work at once since the start",
                work.peak(),
            ),
            Metric::gauge(
                "work_running_peak_per_cpu",
                "Most pieces of work at once, for each CPU that the process may use",
                work.peak() as f64 / cpus as f64,
            ),
            Metric::sum(
                "work_cpu_seconds_total",
                "CPU time of the threads that did it, while they did it",
                self.work_nanoseconds.load(Relaxed) as f64 / 1e9,
            ),
            Metric::counter(
                "bodies_kept_total",
                "Bodies of the upstream that were sent to the archive and read back, by their bytes",
                self.bodies_kept(),
            ),
        ]
    }
}

/// A count to divide by.
fn at_least_one(count: &AtomicU64) -> f64 {
    count.load(Relaxed).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_activity_is_counted_from_its_begin_to_its_end() {
        let activity = Activity::default();
        let first = activity.begin();
        drop((activity.begin(), activity.begin()));
        assert_eq!((activity.begun(), activity.ended()), (3, 2));
        assert_eq!((activity.running(), activity.peak()), (1, 3));
        drop(first);
        assert_eq!((activity.ended(), activity.running()), (3, 0));
    }
}
