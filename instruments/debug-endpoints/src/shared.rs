//! State that all endpoints share: the instruments, and the service's own additions.

use std::fmt;
use std::sync::Arc;

use crate::cpu_profiler::CpuProfiler;
use crate::incidents::recorder::Recorder;
use crate::runtimes::Runtimes;
use crate::stacks::threads::ThreadProfiler;
use crate::waits::Waits;

/// The service's own counters, as text for Prometheus.
pub(crate) type OwnMetrics = Arc<dyn Fn() -> Result<String, fmt::Error> + Send + Sync>;

/// The instruments, and the service's own additions.
pub(crate) struct Shared {
    pub(crate) cpu: CpuProfiler,
    pub(crate) threads: ThreadProfiler,
    pub(crate) waits: Waits,
    pub(crate) runtimes: Runtimes,
    pub(crate) metrics: Option<OwnMetrics>,
    /// Incidents, if the service records them.
    pub(crate) incidents: Option<Arc<Recorder>>,
    /// Lines of the index for the endpoints that the service adds.
    pub(crate) index: String,
}
