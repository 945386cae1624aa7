//! Measurements that one chapter has beside its claims: each is an entry of `[[extras]]`, and the other chapters know
//! nothing of it.

use serde::{Deserialize, Serialize};

use crate::measurement::checked;

/// A measurement beside the claims, taken when a capture is recorded unless it says otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Extra {
    /// Connections counted over time, for a plot. Every proof takes them.
    Connections {
        /// The scenario: a key of `[scenarios]`.
        scenario: String,
    },
    /// Requests that wait for a connection to the database, counted over time, for a plot.
    Queue {
        /// The scenario: a key of `[scenarios]`.
        scenario: String,
    },
    /// Other programs that do the same work, measured beside the solution, and when a proof runs against nginx.
    Baselines(Baselines),
    /// Heap profiles of each variant.
    Heap {
        /// Seconds of each profile.
        #[serde(deserialize_with = "checked::some_seconds")]
        seconds: f64,
        /// The scenario. dhat slows every allocation by some microseconds.
        scenario: String,
    },
}

/// Other programs that do what the chapter's service does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baselines {
    /// The scenario: a key of `[scenarios]`.
    pub scenario: String,
    /// Folder of a Go program within the chapter's: it takes `-port` and `-upstream`, and prints a
    /// line with its address.
    pub go: String,
    /// Address at which nginx, with the chapter's `nginx.conf`, answers as the upstream.
    pub nginx_upstream: String,
    /// Address at which the same nginx answers as a proxy before it.
    pub nginx_proxy: String,
}

impl Extra {
    /// Returns the scenario that it names, with its place in the file.
    pub(super) fn scenario(&self) -> (&'static str, &str) {
        match self {
            Self::Connections { scenario } => ("extras.connections.scenario", scenario),
            Self::Queue { scenario } => ("extras.queue.scenario", scenario),
            Self::Baselines(baselines) => ("extras.baselines.scenario", &baselines.scenario),
            Self::Heap { scenario, .. } => ("extras.heap.scenario", scenario),
        }
    }
}
