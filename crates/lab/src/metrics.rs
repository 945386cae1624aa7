//! The Prometheus text of a server.

use std::fmt::{self, Write};
use std::sync::{Arc, OnceLock};
use std::thread::available_parallelism;

use crate::counters::Counters;
use crate::heartbeat::Heartbeat;
use crate::locality;
use crate::pool_use::PoolUse;
use crate::scans::Scans;
use crate::upstream::Counted;

/// What does not change while a server runs.
#[derive(Debug, Clone)]
pub(crate) struct BuildFacts {
    pub(crate) chapter: &'static str,
    pub(crate) variant: String,
    pub(crate) optimised: bool,
}

/// What `/metrics` tells before the runtime and the process.
#[derive(Debug)]
pub(crate) struct Metrics {
    facts: BuildFacts,
    counters: Arc<Counters>,
    /// Looked at once: the process may be moved to other CPUs before `/metrics` is asked for.
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
    pub(crate) fn new(counters: &Arc<Counters>, facts: &BuildFacts, sources: Sources) -> Self {
        Self {
            facts: facts.clone(),
            counters: Arc::clone(counters),
            cpus: available_parallelism().map_or(1, usize::from),
            sources,
        }
    }

    /// The Prometheus text of this moment.
    pub(crate) fn text(&self) -> Result<String, fmt::Error> {
        let BuildFacts {
            chapter,
            variant,
            optimised,
        } = &self.facts;
        let mut text = String::new();
        writeln!(
            text,
            "# HELP lab_info What runs.\n# TYPE lab_info gauge\nlab_info{{chapter=\"{chapter}\",\
             variant=\"{variant}\",optimised=\"{optimised}\"}} 1"
        )?;
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
            heartbeat.metrics(self.counters.file_bytes()),
            upstream.get().map(Counted::metrics).unwrap_or_default(),
            scans.counts().metrics(),
            locality::metrics(),
        ] {
            for metric in metrics {
                metric.write_to(&mut text)?;
            }
        }
        Ok(text)
    }
}
