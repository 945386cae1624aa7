//! The Prometheus text of a server: its counters, and what the runtime and the system keep.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::thread::available_parallelism;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use tokio::runtime::Handle;

use crate::Scans;
use crate::counters::Counters;
use crate::heartbeat::Heartbeat;
use crate::locality;
use crate::upstream::Counted;

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
    counters: Arc<Counters>,
    processors: f64,
    sources: Sources,
}

/// What not every chapter has: set when it asks for it.
#[derive(Debug, Clone)]
pub(crate) struct Sources {
    pub(crate) heartbeat: Heartbeat,
    pub(crate) upstream: Arc<OnceLock<Counted>>,
    pub(crate) scans: Scans,
}

impl Sources {
    pub(crate) fn new(scans: Scans) -> Self {
        Self {
            heartbeat: Heartbeat::default(),
            upstream: Arc::default(),
            scans,
        }
    }
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
    reactor_stall_worst: Gauge<f64, AtomicU64>,
    reactor_stall_p99: Gauge<f64, AtomicU64>,
    reactor_turn_p99: Gauge<f64, AtomicU64>,
    reactor_work_between_ticks_peak: Gauge,
    work_running_peak_per_processor: Gauge<f64, AtomicU64>,
    #[cfg(target_os = "linux")]
    process_threads: Gauge,
    #[cfg(target_os = "linux")]
    process_memory_peak: Gauge,
    upstream_connections: Gauge,
    upstream_requests: Gauge,
    upstream_connections_per_request: Gauge<f64, AtomicU64>,
    upstream_ports_in_time_wait: Gauge,
    data_copies: Gauge,
    data_reads: Gauge,
    data_reads_at_home_share: Gauge<f64, AtomicU64>,
    scans: Gauge,
    scan_workers: Gauge,
    scan_processors: Gauge,
    processors_usable: Gauge,
    workers_match_processors: Gauge<f64, AtomicU64>,
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
            (
                "reactor_work_between_ticks_peak",
                "Most pieces of work that the reactor's own thread did between two of those ticks",
                &self.reactor_work_between_ticks_peak,
            ),
            #[cfg(target_os = "linux")]
            (
                "process_threads",
                "Threads of the whole process",
                &self.process_threads,
            ),
            (
                "upstream_connections_total",
                "Connections that the upstream accepted",
                &self.upstream_connections,
            ),
            (
                "upstream_requests_total",
                "Requests that the upstream received",
                &self.upstream_requests,
            ),
            (
                "upstream_ports_in_time_wait",
                "Local ports held by ended connections to the upstream",
                &self.upstream_ports_in_time_wait,
            ),
            (
                "data_copies",
                "Copies of the data set in memory",
                &self.data_copies,
            ),
            ("data_reads_total", "Reads of a copy", &self.data_reads),
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
            (
                "reactor_stall_worst",
                "Longest lateness of a task that ticks every millisecond",
                &self.reactor_stall_worst,
            ),
            (
                "reactor_stall_p99",
                "What that lateness is below in 99 of 100 moments",
                &self.reactor_stall_p99,
            ),
            (
                "reactor_turn_p99",
                "Processor time of the reactor's own thread between two of those ticks, in 99 of 100 moments",
                &self.reactor_turn_p99,
            ),
        ] {
            registry.register_with_unit(name, help, Unit::Seconds, gauge.clone());
        }
        #[cfg(target_os = "linux")]
        registry.register_with_unit(
            "process_memory_peak",
            "Most memory that the process had resident",
            Unit::Bytes,
            self.process_memory_peak.clone(),
        );
        self.register_ratios(registry);
        self.register_scans(registry);
    }

    fn register_ratios(&self, registry: &mut Registry) {
        registry.register(
            "work_running_peak_per_processor",
            "Most pieces of work at once, for each processor that the process may use",
            self.work_running_peak_per_processor.clone(),
        );
        registry.register(
            "upstream_connections_per_request",
            "Connections that the upstream accepted for each request",
            self.upstream_connections_per_request.clone(),
        );
        registry.register(
            "data_reads_at_home_share",
            "Reads by a thread bound to a processor, of a copy that such a thread of its memory region wrote",
            self.data_reads_at_home_share.clone(),
        );
        #[cfg(feature = "allocations")]
        registry.register(
            "allocations_per_request",
            "Heap allocations while a request was handled, on average since the start",
            self.allocations_per_request.clone(),
        );
    }

    fn register_scans(&self, registry: &mut Registry) {
        for (name, help, gauge) in [
            ("scans_total", "Scans of the data set", &self.scans),
            (
                "scan_workers",
                "Threads that have scanned",
                &self.scan_workers,
            ),
            (
                "scan_processors",
                "Processors on which a scan has ended",
                &self.scan_processors,
            ),
            (
                "processors_usable",
                "Processors that the process might use when it started",
                &self.processors_usable,
            ),
        ] {
            registry.register(name, help, gauge.clone());
        }
        registry.register(
            "workers_match_processors",
            "Processors that scan by as many threads, against the processors usable; or the threads, where they are more",
            self.workers_match_processors.clone(),
        );
    }
}

impl Metrics {
    /// `runtime` is the service's, not the admin listener's.
    pub(crate) fn new(
        counters: &Arc<Counters>,
        facts: &BuildFacts,
        runtime: Handle,
        sources: Sources,
    ) -> Self {
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
            counters: Arc::clone(counters),
            // Asked once: the process may have been given others by the time somebody looks.
            processors: available_parallelism().map_or(1, usize::from) as f64,
            sources,
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
        if let Some(stall) = self.sources.heartbeat.stall() {
            s.reactor_stall_worst.set(stall.worst);
            s.reactor_stall_p99.set(stall.p99);
            s.reactor_turn_p99.set(stall.turn_p99);
            s.reactor_work_between_ticks_peak
                .set(whole(stall.most_pieces));
        }
        s.work_running_peak_per_processor
            .set(self.counters.work_running_peak() as f64 / self.processors);
        #[cfg(target_os = "linux")]
        {
            // Without it nothing is known, and the gauges keep what they had.
            let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
            let field = |name| status_field(&status, name);
            if let (Some(threads), Some(kib)) = (field("Threads:"), field("VmHWM:")) {
                s.process_threads.set(threads);
                s.process_memory_peak.set(kib * 1_024);
            }
        }
        if let Some(upstream) = self.sources.upstream.get() {
            let counts = upstream.now();
            s.upstream_connections.set(whole(counts.connections));
            s.upstream_requests.set(whole(counts.requests));
            s.upstream_connections_per_request
                .set(counts.connections as f64 / counts.requests.max(1) as f64);
            s.upstream_ports_in_time_wait
                .set(whole(upstream.ports_in_time_wait()));
        }
        let seen = self.sources.scans.seen();
        s.scans.set(whole(seen.scans));
        s.scan_workers.set(whole(seen.threads as u64));
        s.scan_processors.set(whole(seen.processors as u64));
        s.processors_usable.set(whole(seen.usable as u64));
        s.workers_match_processors.set(seen.match_of_workers());
        if let Some(seen) = locality::counts() {
            s.data_copies.set(whole(seen.copies));
            s.data_reads.set(whole(seen.reads));
            s.data_reads_at_home_share.set(seen.at_home_share);
        }
        #[cfg(feature = "allocations")]
        s.allocations_per_request
            .set(crate::allocations::per_request());
    }
}

fn whole(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The number after `name` in the text of `/proc/self/status`.
#[cfg(target_os = "linux")]
fn status_field(status: &str, name: &str) -> Option<i64> {
    let value = status.lines().find_map(|line| line.strip_prefix(name))?;
    value.split_whitespace().next()?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::status_field;

    #[test]
    fn the_system_tells_threads_and_memory() {
        let status = std::fs::read_to_string("/proc/self/status").expect("this is Linux");
        assert!(status_field(&status, "Threads:").is_some_and(|threads| threads >= 1));
        assert!(status_field(&status, "VmHWM:").is_some_and(|kib| kib > 100));
        assert_eq!(status_field(&status, "NoSuch:"), None);
    }
}
