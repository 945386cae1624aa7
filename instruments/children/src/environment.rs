//! Description of the machine that figures are measured on.

use std::{collections::BTreeMap, fs, path::Path, thread};

use serde::{Deserialize, Serialize};
use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind, System};

use crate::quota;

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
    /// CPUs on which server and generator were kept, and whether they are threads of one core; `None` in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<String>,
    /// Set if the servers were optimized builds.
    pub optimised: bool,
    /// The cargo profile of the servers.
    pub build_profile: String,
    /// Versions of the tools, `rustc` among them.
    pub tools: BTreeMap<String, String>,
}

impl Environment {
    /// Returns one line for the foot of a table: CPU, CPUs, memory, system.
    pub fn in_a_line(&self) -> String {
        let cpus = match self.cpus_usable {
            1 => "1 CPU".to_owned(),
            cpus => format!("{cpus} CPUs"),
        };
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

/// Looks at this machine. Call it before any thread is pinned: a pinned
/// thread sees only its own CPU.
pub fn observe(
    optimised: bool,
    build_profile: impl Into<String>,
    tools: BTreeMap<String, String>,
) -> Environment {
    let machine = System::new_with_specifics(
        RefreshKind::nothing()
            .with_cpu(CpuRefreshKind::nothing())
            .with_memory(MemoryRefreshKind::nothing().with_ram()),
    );
    let cpus = machine.cpus();
    let online = count(cpus.len());
    let model = match cpus {
        [first, ..] if !first.brand().trim().is_empty() => first.brand().trim(),
        _ => std::env::consts::ARCH,
    };
    let usable = match thread::available_parallelism() {
        Ok(usable) => count(usable.get()),
        Err(_) => online,
    };
    Environment {
        cpu_model: model.to_owned(),
        cpus_usable: usable,
        cpus_online: online,
        memory_mib: machine.total_memory() / (1024 * 1024),
        numa_nodes: numa_nodes(),
        system: System::long_os_version().unwrap_or(std::env::consts::OS.to_owned()),
        kernel: match System::kernel_version() {
            Some(version) => released(version),
            None => "unknown".to_owned(),
        },
        quota: quota::limit(),
        governor: governor(Path::new("/sys")),
        placement: None,
        optimised,
        build_profile: build_profile.into(),
        tools,
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX).max(1)
}

/// Returns the version without what its builder appended, which may name a host.
fn released(version: String) -> String {
    let end = version
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(version.len());
    match version[..end].trim_end_matches('.') {
        "" => version,
        numbers => numbers.to_owned(),
    }
}

/// Returns the number of NUMA nodes of this machine; 1 where the system does not tell.
pub fn numa_nodes() -> u32 {
    numa_nodes_in(Path::new("/sys"))
}

fn numa_nodes_in(sys: &Path) -> u32 {
    let mut nodes = 0;
    if let Ok(entries) = fs::read_dir(sys.join("devices/system/node")) {
        for entry in entries.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            // The folder also has files such as `online`.
            if let Some(number) = name.strip_prefix("node")
                && number.parse::<u32>().is_ok()
            {
                nodes += 1;
            }
        }
    }
    count(nodes)
}

fn governor(sys: &Path) -> Option<String> {
    let file = sys.join("devices/system/cpu/cpu0/cpufreq/scaling_governor");
    let name = fs::read_to_string(file).ok()?.trim().to_owned();
    if name.is_empty() { None } else { Some(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_keeps_its_number_and_loses_its_builder() {
        assert_eq!(released("6.1.0-25-cloud-amd64".to_owned()), "6.1.0");
        assert_eq!(released("6.8.0+alice@host".to_owned()), "6.8.0");
        assert_eq!(released("26100".to_owned()), "26100");
        assert_eq!(released("odd".to_owned()), "odd");
    }

    #[test]
    fn nodes_and_the_governor_are_read_where_there_are_any() {
        let sys = tempfile::tempdir().unwrap();
        assert_eq!(numa_nodes_in(sys.path()), 1, "a system that does not tell");
        assert_eq!(governor(sys.path()), None);
        for name in ["node0", "node1", "node12", "nodes", "power"] {
            fs::create_dir_all(sys.path().join("devices/system/node").join(name)).unwrap();
        }
        assert_eq!(numa_nodes_in(sys.path()), 3);
        let folder = sys.path().join("devices/system/cpu/cpu0/cpufreq");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("scaling_governor"), "powersave\n").unwrap();
        assert_eq!(governor(sys.path()).as_deref(), Some("powersave"));
    }

    #[test]
    fn this_machine_is_described_without_saying_whose_it_is() {
        let here = observe(true, "dev", BTreeMap::new());
        println!("{here:#?}\n{}", here.in_a_line());
        assert!(here.cpus_usable >= 1 && here.cpus_online >= 1);
        assert!(here.memory_mib > 0);
        let text = serde_json::to_string(&here).unwrap();
        assert!(!text.contains('\\') && !text.contains("/home"), "{text}");
        if let Some(host) = System::host_name().filter(|name| name.len() > 3) {
            assert!(!text.contains(&host), "{text}");
        }
    }
}
