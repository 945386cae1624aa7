//! What a server counts while it serves.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use crate::PoolUse;
use crate::turns::Turns;

/// Counters that the hot path adds to: each is one relaxed atomic, but for the turns.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    requests: Counter,
    requests_in_flight: Gauge,
    requests_held_up: Counter,
    connections: Counter,
    connections_open: Gauge,
    pub(crate) panics: Counter,
    database_calls: Counter,
    database_calls_in_flight: Gauge,
    database_calls_in_flight_peak: Gauge,
    database_records: Counter,
    database_calls_in_flight_at_record_peak: Gauge,
    pub(crate) upstream_connections: Counter,
    pub(crate) upstream_requests: Counter,
    upstream_requests_in_flight: Gauge,
    pub(crate) upstream_requests_in_flight_peak: Gauge,
    pub(crate) upstream_body_bytes: Counter,
    file_bytes_written: Counter,
    file_bytes_read: Counter,
    work_runs: Counter,
    work_running: Gauge,
    pub(crate) work_running_peak: Gauge,
    work_cpu: Counter<f64, AtomicU64>,
    pub(crate) connections_finished: Counter,
    pub(crate) connections_moved: Counter,
    /// Of a chapter that has a pool.
    pub(crate) pool: OnceLock<PoolUse>,
    /// Of a chapter whose requests wait for their turn to do [`Work`](crate::Work).
    pub(crate) turns: OnceLock<Turns>,
}

/// Lowers a gauge when what it counts ends, however it ends.
#[derive(Debug)]
pub(crate) struct InFlight(Gauge);

impl InFlight {
    fn enter(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }

    /// Raises the gauge, and its peak with it.
    fn enter_with_peak(gauge: &Gauge, peak: &Gauge) -> Self {
        let before = gauge.inc();
        peak.inner().fetch_max(before + 1, Ordering::Relaxed);
        Self(gauge.clone())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Counters {
    pub(crate) fn enter_request(&self) -> InFlight {
        self.requests.inc();
        InFlight::enter(&self.requests_in_flight)
    }

    pub(crate) fn enter_connection(&self) -> InFlight {
        self.connections.inc();
        InFlight::enter(&self.connections_open)
    }

    pub(crate) fn enter_database(&self) -> InFlight {
        self.database_calls.inc();
        InFlight::enter_with_peak(
            &self.database_calls_in_flight,
            &self.database_calls_in_flight_peak,
        )
    }

    /// The upstream serves a request; its count is kept where the answer is made.
    pub(crate) fn enter_upstream(&self) -> InFlight {
        InFlight::enter_with_peak(
            &self.upstream_requests_in_flight,
            &self.upstream_requests_in_flight_peak,
        )
    }

    /// A request waited in vain for its call or change.
    pub(crate) fn note_held_up(&self) {
        self.requests_held_up.inc();
    }

    /// A change was queued for the database.
    pub(crate) fn note_record(&self) {
        self.database_records.inc();
        let now = self.database_calls_in_flight.get();
        self.database_calls_in_flight_at_record_peak
            .inner()
            .fetch_max(now, Ordering::Relaxed);
    }

    /// A piece of work begins on the calling thread.
    pub(crate) fn enter_work(&self) -> InFlight {
        InFlight::enter_with_peak(&self.work_running, &self.work_running_peak)
    }

    /// A piece of work took so much CPU time.
    pub(crate) fn note_work(&self, cpu_time: Duration) {
        self.work_runs.inc();
        self.work_cpu.inc_by(cpu_time.as_secs_f64());
    }

    /// So many bytes were written to a file.
    pub(crate) fn note_written(&self, bytes: u64) {
        self.file_bytes_written.inc_by(bytes);
    }

    /// So many bytes were read from a file.
    pub(crate) fn note_read(&self, bytes: u64) {
        self.file_bytes_read.inc_by(bytes);
    }

    /// Bytes that were written to files and read from them so far.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.file_bytes_written.get() + self.file_bytes_read.get()
    }

    /// Bytes that were both written to files and read back.
    pub(crate) fn bytes_kept(&self) -> u64 {
        self.file_bytes_written
            .get()
            .min(self.file_bytes_read.get())
    }

    /// Upstream's bodies that bytes which were written and read back come to.
    pub(crate) fn bodies_kept(&self) -> u64 {
        let bodies = u128::from(self.upstream_requests.get());
        let asked_for = u128::from(self.upstream_body_bytes.get().max(1));
        let kept = u128::from(self.bytes_kept()) * bodies / asked_for;
        u64::try_from(kept).unwrap_or(u64::MAX)
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        for (name, help, counter) in [
            ("http_requests", "Requests received", &self.requests),
            (
                "requests_held_up",
                "Requests that waited longer than half of a call before they called the database or changed it",
                &self.requests_held_up,
            ),
            ("connections", "Connections accepted", &self.connections),
            (
                "connections_finished",
                "Connections that have ended",
                &self.connections_finished,
            ),
            (
                "connections_moved",
                "Times that another thread went on with a connection which was handed over to one",
                &self.connections_moved,
            ),
            ("panics", "Panics in any thread of the server", &self.panics),
            (
                "work_runs",
                "Pieces of CPU work that were done",
                &self.work_runs,
            ),
            (
                "database_calls",
                "Calls begun on the database",
                &self.database_calls,
            ),
            (
                "database_records",
                "Changes queued for the database",
                &self.database_records,
            ),
        ] {
            registry.register(name, help, counter.clone());
        }
        for (name, help, gauge) in [
            (
                "http_requests_in_flight",
                "Requests received and not yet answered",
                &self.requests_in_flight,
            ),
            (
                "connections_open",
                "Connections accepted and not yet closed",
                &self.connections_open,
            ),
            (
                "work_running",
                "Pieces of work begun and not ended",
                &self.work_running,
            ),
            (
                "work_running_peak",
                "Most pieces of work at once since the start",
                &self.work_running_peak,
            ),
            (
                "database_calls_in_flight",
                "Calls inside the database now",
                &self.database_calls_in_flight,
            ),
            (
                "database_calls_in_flight_peak",
                "Most calls inside the database at once since the start",
                &self.database_calls_in_flight_peak,
            ),
            (
                "database_calls_in_flight_at_record_peak",
                "Most calls inside the database at the moment of a change since the start",
                &self.database_calls_in_flight_at_record_peak,
            ),
        ] {
            registry.register(name, help, gauge.clone());
        }
        registry.register_with_unit(
            "work_cpu",
            "CPU time of the threads that did it, while they did it",
            Unit::Seconds,
            self.work_cpu.clone(),
        );
    }
}
