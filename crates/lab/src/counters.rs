//! What a server counts, and its Prometheus text.

use std::sync::Arc;
use std::sync::atomic::Ordering;

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

    pub(crate) fn count_panic(&self) {
        self.panics.inc();
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
    worker_busy: Gauge<f64, std::sync::atomic::AtomicU64>,
    process_cpu: Gauge<f64, std::sync::atomic::AtomicU64>,
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
        let c = counters;
        registry.register("http_requests", "Requests received", c.requests.clone());
        registry.register(
            "http_requests_in_flight",
            "Requests received and not yet answered",
            c.requests_in_flight.clone(),
        );
        registry.register("connections", "Connections accepted", c.connections.clone());
        registry.register(
            "connections_open",
            "Connections accepted and not yet closed",
            c.connections_open.clone(),
        );
        registry.register(
            "panics",
            "Panics in any thread of the server",
            c.panics.clone(),
        );
        registry.register(
            "database_calls",
            "Calls begun on the database",
            c.database_calls.clone(),
        );
        registry.register(
            "database_calls_in_flight",
            "Calls inside the database now",
            c.database_calls_in_flight.clone(),
        );
        registry.register(
            "database_calls_in_flight_peak",
            "Most calls inside the database at once since the start",
            c.database_calls_in_flight_peak.clone(),
        );
        let sampled = Sampled::default();
        let s = &sampled;
        registry.register("tokio_workers", "Worker threads", s.workers.clone());
        registry.register(
            "tokio_alive_tasks",
            "Tasks spawned and not ended",
            s.alive_tasks.clone(),
        );
        registry.register(
            "tokio_global_queue_depth",
            "Tasks waiting in the injection queue",
            s.global_queue_depth.clone(),
        );
        registry.register(
            "tokio_worker_parks",
            "Times that workers went to sleep for want of work, all workers",
            s.worker_parks.clone(),
        );
        registry.register_with_unit(
            "tokio_worker_busy",
            "Time that workers were not parked, all workers",
            Unit::Seconds,
            s.worker_busy.clone(),
        );
        registry.register_with_unit(
            "process_cpu",
            "Processor time of the whole process",
            Unit::Seconds,
            s.process_cpu.clone(),
        );
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
    }
}

fn whole(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
