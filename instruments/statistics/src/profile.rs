//! Profiles of servers, by the instrument that took them.

use serde::{Deserialize, Serialize};

/// Instrument that drew a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProfileKind {
    /// Places where CPUs spend time.
    Cpu,
    /// Places where requests wait.
    Await,
    /// Places that allocate memory.
    Heap,
}

impl ProfileKind {
    /// Returns its name in file names.
    pub fn key(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Await => "await",
            Self::Heap => "heap",
        }
    }
}

/// Profiles of base and change by one instrument, under the same load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenByBoth {
    /// Instrument that took the profiles.
    pub kind: ProfileKind,
    /// Time that it profiled each, in seconds.
    pub seconds: u32,
    /// Folded stacks of the base, one text for each part of that time.
    pub base: Vec<String>,
    /// Folded stacks of the change, likewise.
    pub change: Vec<String>,
}
