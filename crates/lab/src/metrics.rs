//! The Prometheus text of a server: its counters, and what the runtime and the system keep.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::thread::available_parallelism;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use tokio::runtime::Handle;

use crate::counters::Counters;
use crate::heartbeat::Heartbeat;
use crate::locality;
use crate::metric::Metric;
use crate::upstream::Counted;
use crate::{PoolUse, Scans};

/// What does not change while a server runs.
#[derive(Debug, Clone)]
pub(crate) struct BuildFacts {
    pub(crate) chapter: &'static str,
    pub(crate) variant: String,
    pub(crate) optimised: bool,
}

/// Everything under `/metrics`.
#[derive(Debug)]
pub(crate) struct Metrics(Registry);

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
        registry.register_collector(Box::new(OnRequest {
            runtime,
            counters: Arc::clone(counters),
            // Read once: the process may be moved to other CPUs before /metrics is asked for.
            cpus: available_parallelism().map_or(1, usize::from) as f64,
            sources,
        }));
        Self(registry)
    }

    /// The Prometheus text of this moment.
    pub(crate) fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.0)?;
        Ok(text)
    }
}

/// The sources that only some chapters have. Each stays empty until the chapter asks for it.
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

/// Collects the values that are read for each request of `/metrics`.
#[derive(Debug)]
struct OnRequest {
    runtime: Handle,
    counters: Arc<Counters>,
    cpus: f64,
    sources: Sources,
}

impl Collector for OnRequest {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let upstream = self.sources.upstream.get();
        let pool = self.counters.pool.get();
        let all = [
            of_runtime(&self.runtime),
            of_process(),
            self.of_work(),
            pool.map(PoolUse::metrics).unwrap_or_default(),
            self.sources.heartbeat.metrics(),
            upstream.map(Counted::metrics).unwrap_or_default(),
            self.sources.scans.seen().metrics(),
            locality::metrics(),
        ];
        all.iter()
            .flatten()
            .try_for_each(|metric| metric.encode(&mut encoder))
    }
}

impl OnRequest {
    fn of_work(&self) -> Vec<Metric> {
        vec![
            Metric::ratio(
                "work_running_peak_per_cpu",
                "Most pieces of work at once, for each CPU that the process may use",
                self.counters.work_running_peak.get() as f64 / self.cpus,
            ),
            Metric::count(
                "bodies_kept_total",
                "Bodies of the upstream that were written to files and read back, by their bytes",
                self.counters.bodies_kept(),
            ),
            Metric::ratio(
                "reactor_file_bytes_share",
                "Share of all bytes of files that the reactor's own thread wrote and read while no other thread was the reactor",
                self.sources.heartbeat.file_bytes() as f64
                    / self.counters.file_bytes().max(1) as f64,
            ),
            #[cfg(feature = "allocations")]
            Metric::ratio(
                "allocations_per_request",
                "Heap allocations of the process for each answered request, since the first one",
                crate::allocations::per_request(),
            ),
        ]
    }
}

fn of_runtime(runtime: &Handle) -> Vec<Metric> {
    let runtime = runtime.metrics();
    let workers = runtime.num_workers();
    vec![
        Metric::count("tokio_workers", "Worker threads", workers as u64),
        Metric::count(
            "tokio_alive_tasks",
            "Tasks spawned and not ended",
            runtime.num_alive_tasks() as u64,
        ),
        Metric::count(
            "tokio_global_queue_depth",
            "Tasks waiting in the injection queue",
            runtime.global_queue_depth() as u64,
        ),
        Metric::count(
            "tokio_worker_parks",
            "Times that workers went to sleep for want of work, all workers",
            (0..workers).map(|w| runtime.worker_park_count(w)).sum(),
        ),
        Metric::seconds(
            "tokio_worker_busy",
            "Time that workers were not parked, all workers",
            (0..workers)
                .map(|w| runtime.worker_total_busy_duration(w).as_secs_f64())
                .sum(),
        ),
    ]
}

fn of_process() -> Vec<Metric> {
    #[allow(unused_mut)] // Elsewhere than on Linux.
    let mut metrics = vec![Metric::seconds(
        "process_cpu",
        "CPU time of the whole process",
        cpu_time::ProcessTime::now().as_duration().as_secs_f64(),
    )];
    #[cfg(target_os = "linux")]
    {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let field = |name| status_field(&status, name);
        metrics.extend(field("Threads:").map(|threads| {
            Metric::count("process_threads", "Threads of the whole process", threads)
        }));
        metrics.extend(field("VmHWM:").map(|kib| {
            let help = "Most memory that the process had resident";
            Metric::bytes("process_memory_peak", help, kib * 1_024)
        }));
    }
    metrics
}

/// The number after `name` in the text of `/proc/self/status`.
#[cfg(target_os = "linux")]
fn status_field(status: &str, name: &str) -> Option<u64> {
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
