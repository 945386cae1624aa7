//! What a fix may cost: throughput that must not be lost, threads and memory that must not be spent.

use serde::{Deserialize, Serialize};

use crate::claim::Limit;

/// The table `[price]` of `chapter.toml`: what the solution may cost at most.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// The share (0 to 1) of the problem's requests a second that the solution keeps.
    pub throughput_share: f64,
    /// The same of an exercise that is checked, in a single round on a machine that may be busy.
    pub check_throughput_share: f64,
    /// What else it keeps to. For an exercise the `[check]` has limits of its own.
    #[serde(default)]
    pub limits: Vec<Limit>,
}
