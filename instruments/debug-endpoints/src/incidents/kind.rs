//! Kinds of incidents.

use serde::Serialize;

/// Kind of an incident.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// A worker of a runtime did not yield.
    Late,
    /// The 99th percentile of a route's latency is over the limit.
    Latency,
    /// A job waited for a thread of a blocking pool.
    BlockingPool,
    /// File descriptors run out.
    Descriptors,
    /// Memory runs out.
    Memory,
    /// The system starts no further thread.
    Threads,
}

impl Kind {
    /// All kinds, in the order of their numbers.
    pub(crate) const ALL: [Self; 6] = [
        Self::Late,
        Self::Latency,
        Self::BlockingPool,
        Self::Descriptors,
        Self::Memory,
        Self::Threads,
    ];

    /// Returns its name in metrics, as in the JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Late => "late",
            Self::Latency => "latency",
            Self::BlockingPool => "blocking_pool",
            Self::Descriptors => "descriptors",
            Self::Memory => "memory",
            Self::Threads => "threads",
        }
    }
}
