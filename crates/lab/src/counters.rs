//! What a server counts, and its Prometheus text.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use tokio::runtime::Handle;

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

    pub(crate) fn count_panic(&self) {
        self.panics.inc();
    }

    fn register(&self, registry: &mut Registry) {
        for (name, help, counter) in [
            ("http_requests", "Requests received", &self.requests),
            ("connections", "Connections accepted", &self.connections),
            ("panics", "Panics in any thread of the server", &self.panics),
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
    }
}

/// What does not change while a server runs.
#[derive(Debug, Clone)]
pub(crate) struct BuildFacts {
    pub(crate) chapter: &'static str,
    pub(crate) variant: String,
    pub(crate) optimised: bool,
}

/// Everything under `/metrics`; gathers what is not counted on the hot path when asked.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    runtime: Handle,
    sampled: Sampled,
}

/// Figures that the runtime or the system keeps; copied in at every scrape.
#[derive(Debug, Default)]
struct Sampled {
    workers: Gauge,
    alive_tasks: Gauge,
    global_queue_depth: Gauge,
    worker_parks: Gauge,
    worker_busy: Gauge<f64, AtomicU64>,
    process_cpu: Gauge<f64, AtomicU64>,
    #[cfg(feature = "allocations")]
    allocations_per_request: Gauge<f64, AtomicU64>,
}

impl Sampled {
    fn register(&self, registry: &mut Registry) {
        for (name, help, gauge) in [
            ("tokio_workers", "Worker threads", &self.workers),
            (
                "tokio_alive_tasks",
                "Tasks spawned and not ended",
                &self.alive_tasks,
            ),
            (
                "tokio_global_queue_depth",
                "Tasks waiting in the injection queue",
                &self.global_queue_depth,
            ),
            (
                "tokio_worker_parks",
                "Times that workers went to sleep for want of work, all workers",
                &self.worker_parks,
            ),
        ] {
            registry.register(name, help, gauge.clone());
        }
        for (name, help, gauge) in [
            (
                "tokio_worker_busy",
                "Time that workers were not parked, all workers",
                &self.worker_busy,
            ),
            (
                "process_cpu",
                "Processor time of the whole process",
                &self.process_cpu,
            ),
        ] {
            registry.register_with_unit(name, help, Unit::Seconds, gauge.clone());
        }
        #[cfg(feature = "allocations")]
        registry.register(
            "allocations_per_request",
            "Heap allocations while a request was handled, on average since the start",
            self.allocations_per_request.clone(),
        );
    }
}

impl Metrics {
    /// `runtime` is the service's, not the admin listener's.
    pub(crate) fn new(counters: &Arc<Counters>, facts: &BuildFacts, runtime: Handle) -> Self {
        let mut registry = Registry::default();
        registry.register(
            "lab",
            "What runs",
            Info::new(vec![
                ("chapter", facts.chapter.to_owned()),
                ("variant", facts.variant.clone()),
                ("optimised", facts.optimised.to_string()),
            ]),
        );
        counters.register(&mut registry);
        let sampled = Sampled::default();
        sampled.register(&mut registry);
        Self {
            registry,
            runtime,
            sampled,
        }
    }

    /// The Prometheus text of this moment.
    pub(crate) fn text(&self) -> Result<String, std::fmt::Error> {
        self.sample();
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }

    fn sample(&self) {
        let runtime = self.runtime.metrics();
        let workers = runtime.num_workers();
        let s = &self.sampled;
        s.workers.set(whole(workers as u64));
        s.alive_tasks.set(whole(runtime.num_alive_tasks() as u64));
        s.global_queue_depth
            .set(whole(runtime.global_queue_depth() as u64));
        s.worker_parks.set(whole(
            (0..workers).map(|w| runtime.worker_park_count(w)).sum(),
        ));
        s.worker_busy.set(
            (0..workers)
                .map(|w| runtime.worker_total_busy_duration(w).as_secs_f64())
                .sum(),
        );
        s.process_cpu
            .set(cpu_time::ProcessTime::now().as_duration().as_secs_f64());
        #[cfg(feature = "allocations")]
        s.allocations_per_request
            .set(crate::allocations::per_request());
    }
}

fn whole(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
