//! The Prometheus text of a server: its counters, and what is read when it is asked for.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::thread::available_parallelism;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use crate::counters::Counters;
use crate::heartbeat::Heartbeat;
use crate::locality;
use crate::metric::Metric;
use crate::turns::Turns;
use crate::upstream::Counted;
use crate::{PoolUse, Scans};

/// What does not change while a server runs.
#[derive(Debug, Clone)]
pub(crate) struct BuildFacts {
    pub(crate) chapter: &'static str,
    pub(crate) variant: String,
    pub(crate) optimised: bool,
}

/// What `/metrics` tells before the runtime and the process.
#[derive(Debug)]
pub(crate) struct Metrics(Registry);

impl Metrics {
    pub(crate) fn new(counters: &Arc<Counters>, facts: &BuildFacts, sources: Sources) -> Self {
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
    counters: Arc<Counters>,
    cpus: f64,
    sources: Sources,
}

impl Collector for OnRequest {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let upstream = self.sources.upstream.get();
        let pool = self.counters.pool.get();
        let turns = self.counters.turns.get();
        let all = [
            self.of_work(),
            pool.map(PoolUse::metrics).unwrap_or_default(),
            turns.map(Turns::metrics).unwrap_or_default(),
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
        #[cfg(feature = "allocations")]
        let (allocations, bytes) = crate::allocations::per_request();
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
                allocations,
            ),
            #[cfg(feature = "allocations")]
            Metric::ratio("allocated_bytes_per_request", "Bytes of them", bytes),
        ]
    }
}
