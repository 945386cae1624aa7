//! What the endpoints know of the service.

use std::fmt;
use std::sync::Arc;

use crate::cpu_profiler::CpuProfiler;
use crate::runtimes::Runtimes;
use crate::threads::ThreadProfiler;
use crate::waits::Waits;

/// The service's own counters, as text for Prometheus.
pub(crate) type OwnMetrics = Arc<dyn Fn() -> Result<String, fmt::Error> + Send + Sync>;

/// The instruments, and what the service adds.
pub(crate) struct Shared {
    pub(crate) cpu: CpuProfiler,
    pub(crate) threads: ThreadProfiler,
    pub(crate) waits: Waits,
    pub(crate) runtimes: Runtimes,
    pub(crate) metrics: Option<OwnMetrics>,
    /// Lines of the index for what the service adds.
    pub(crate) index: String,
}
