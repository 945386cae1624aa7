//! What a figure was measured on: without it no figure stands.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::figures;

/// The machine and the tools. Never a path, a user or a host name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Environment {
    /// The CPU's name, or its architecture where it has none.
    pub cpu_model: String,
    /// CPUs that this process may use, affinity and quota considered.
    pub cpus_usable: u32,
    /// CPUs that are switched on.
    pub cpus_online: u32,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// NUMA nodes; 1 where the system does not tell.
    pub numa_nodes: u32,
    /// Operating system and version.
    pub system: String,
    /// Kernel version.
    pub kernel: String,
    /// CPUs that a control group's quota allows, where one is set.
    pub quota: Option<f64>,
    /// The frequency governor, where one is known.
    pub governor: Option<String>,
    /// Which CPUs server and generator were kept on, and whether they are threads of one core; `None`
    /// in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<String>,
    /// Whether the servers were optimised builds.
    pub optimised: bool,
    /// The cargo profile of the servers.
    pub build_profile: String,
    /// Versions of the tools, `rustc` among them.
    pub tools: BTreeMap<String, String>,
}

impl Environment {
    /// One line for the foot of a table: CPU, CPUs, memory, system.
    pub fn in_a_line(&self) -> String {
        let cpus = figures::things(self.cpus_usable.into(), "CPU");
        let of = if self.cpus_usable == self.cpus_online {
            String::new()
        } else {
            format!(" of {}", self.cpus_online)
        };
        format!(
            "{}, {cpus}{of}, {} GiB, {}, kernel {}",
            self.cpu_model,
            (self.memory_mib + 512) / 1024,
            self.system,
            self.kernel
        )
    }
}
