//! What a server counts while it serves.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use crate::upstream::counts::Counts;

/// Counters that the hot path adds to: each is one relaxed atomic.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    requests: Counter,
    requests_in_flight: Gauge,
    connections: Counter,
    connections_open: Gauge,
    panics: Counter,
    database_calls: Counter,
    database_calls_in_flight: Gauge,
    database_calls_in_flight_peak: Gauge,
    database_records: Counter,
    database_calls_in_flight_at_record_peak: Gauge,
    upstream_connections: Counter,
    upstream_requests: Counter,
    work_runs: Counter,
    work_running: Gauge,
    work_running_peak: Gauge,
    work_cpu: Counter<f64, AtomicU64>,
    connections_finished: Counter,
}

/// Lowers a gauge when what it counts ends, however it ends.
#[derive(Debug)]
pub(crate) struct InFlight(Gauge);

impl InFlight {
    fn enter(gauge: &Gauge) -> (Self, i64) {
        let before = gauge.inc();
        (Self(gauge.clone()), before + 1)
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
        InFlight::enter(&self.requests_in_flight).0
    }

    pub(crate) fn enter_connection(&self) -> InFlight {
        self.connections.inc();
        InFlight::enter(&self.connections_open).0
    }

    pub(crate) fn enter_database(&self) -> InFlight {
        self.database_calls.inc();
        let (call, now) = InFlight::enter(&self.database_calls_in_flight);
        self.database_calls_in_flight_peak
            .inner()
            .fetch_max(now, Ordering::Relaxed);
        call
    }

    /// A change was queued for the database.
    pub(crate) fn note_record(&self) {
        self.database_records.inc();
        let now = self.database_calls_in_flight.get();
        self.database_calls_in_flight_at_record_peak
            .inner()
            .fetch_max(now, Ordering::Relaxed);
    }

    pub(crate) fn finish_connection(&self) {
        self.connections_finished.inc();
    }

    pub(crate) fn note_upstream_connection(&self) {
        self.upstream_connections.inc();
    }

    /// Which request it is, from 1.
    pub(crate) fn note_upstream_request(&self) -> u64 {
        self.upstream_requests.inc() + 1
    }

    pub(crate) fn upstream_counts(&self) -> Counts {
        Counts {
            connections: self.upstream_connections.get(),
            requests: self.upstream_requests.get(),
        }
    }

    /// A piece of work begins on the calling thread.
    pub(crate) fn enter_work(&self) -> InFlight {
        let (piece, now) = InFlight::enter(&self.work_running);
        self.work_running_peak
            .inner()
            .fetch_max(now, Ordering::Relaxed);
        piece
    }

    /// Most pieces of work at once so far.
    pub(crate) fn work_running_peak(&self) -> i64 {
        self.work_running_peak.get()
    }

    /// A piece of work took so much CPU time.
    pub(crate) fn note_work(&self, cpu_time: Duration) {
        self.work_runs.inc();
        self.work_cpu.inc_by(cpu_time.as_secs_f64());
    }

    pub(crate) fn count_panic(&self) {
        self.panics.inc();
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        for (name, help, counter) in [
            ("http_requests", "Requests received", &self.requests),
            ("connections", "Connections accepted", &self.connections),
            (
                "connections_finished",
                "Connections that have ended",
                &self.connections_finished,
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
