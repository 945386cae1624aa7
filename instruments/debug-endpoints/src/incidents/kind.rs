//! Kinds of incidents.

use serde::Serialize;

/// Kind of an incident.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// A worker of a runtime did not yield.
    Late,
    /// The mean latency of a route left its usual range.
    Latency,
    /// The number of requests in flight left its usual range.
    InFlight,
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
    pub(crate) const ALL: [Self; 7] = [
        Self::Late,
        Self::Latency,
        Self::InFlight,
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
            Self::InFlight => "in_flight",
            Self::BlockingPool => "blocking_pool",
            Self::Descriptors => "descriptors",
            Self::Memory => "memory",
            Self::Threads => "threads",
        }
    }
}
