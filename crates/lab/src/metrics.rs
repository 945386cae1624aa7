//! The Prometheus text of a server.

use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};
use std::thread::available_parallelism;

use crate::counters::Counters;
use crate::heartbeat::Heartbeat;
use crate::locality;
use crate::options::Options;
use crate::pool_use::PoolUse;
use crate::scans::Scans;
use crate::upstream::Counted;

/// The lab's part of `/metrics`, before the metrics of the runtime and of the process.
#[derive(Debug)]
pub(crate) struct Metrics {
    /// Text of the metric that does not change while a server runs.
    info: String,
    counters: Arc<Counters>,
    /// Number of CPUs at the start: later the process may be moved to other CPUs.
    cpus: usize,
    sources: Sources,
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

impl Metrics {
    pub(crate) fn new(counters: &Arc<Counters>, options: &Options, sources: Sources) -> Self {
        Self {
            info: format!(
                "# HELP lab_info What runs.\n# TYPE lab_info gauge\nlab_info{{chapter=\"{}\",variant=\"{}\",\
                 optimised=\"{}\"}} 1\n",
                options.chapter,
                options.variant,
                is_optimised()
            ),
            counters: Arc::clone(counters),
            cpus: available_parallelism().map_or(1, usize::from),
            sources,
        }
    }

    /// The Prometheus text of this moment.
    pub(crate) fn text(&self) -> Result<String, fmt::Error> {
        let mut text = self.info.clone();
        let Sources {
            heartbeat,
            upstream,
            scans,
        } = &self.sources;
        for metrics in [
            self.counters.metrics(self.cpus),
            #[cfg(feature = "allocations")]
            crate::allocations::metrics(),
            self.counters
                .pool
                .get()
                .map(PoolUse::metrics)
                .unwrap_or_default(),
            heartbeat.metrics(self.counters.archive_calls.load(Relaxed)),
            upstream.get().map(Counted::metrics).unwrap_or_default(),
            scans.metrics(),
            locality::metrics(),
        ] {
            for metric in metrics {
                metric.write_to(&mut text)?;
            }
        }
        Ok(text)
    }
}

/// `true` unless the lab, and with it the chapter, was compiled without optimisation.
pub(crate) fn is_optimised() -> bool {
    env!("LAB_OPT_LEVEL") != "0"
}
