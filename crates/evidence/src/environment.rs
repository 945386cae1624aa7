//! What a figure was measured on: without it no figure stands.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The machine and the tools. Never a path, a user or a host name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Environment {
    /// The processor's name, or its architecture where it has none.
    pub cpu_model: String,
    /// Processors that this process may use.
    pub processors_usable: u32,
    /// Processors that are switched on.
    pub processors_online: u32,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Memory regions (NUMA nodes).
    pub memory_regions: u32,
    /// Operating system and version.
    pub system: String,
    /// Kernel version.
    pub kernel: String,
    /// Processors that a control group's quota allows, where one is set.
    pub quota: Option<f64>,
    /// The frequency governor, where one is known.
    pub governor: Option<String>,
    /// Whether the servers were optimised builds.
    pub optimised: bool,
    /// The cargo profile of the servers.
    pub build_profile: String,
    /// Versions of the tools, `rustc` among them.
    pub tools: BTreeMap<String, String>,
}
