//! CPU and NUMA node of the calling thread, as the system reports them.

/// The CPU of this moment, its NUMA node, and whether the thread can leave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Here {
    pub(crate) cpu: usize,
    pub(crate) node: u32,
    /// The system lets the thread run on this CPU only.
    pub(crate) pinned: bool,
}

#[cfg(target_os = "linux")]
mod system {
    use std::fs;
    use std::sync::LazyLock;

    use super::Here;

    static NODES: LazyLock<Vec<u32>> = LazyLock::new(read_nodes);

    impl Here {
        pub(crate) fn now() -> Self {
            let cpu = page_regions::processor().unwrap_or(0);
            let allowed = rustix::thread::sched_getaffinity(None);
            Self {
                cpu,
                node: NODES.get(cpu).copied().unwrap_or(0),
                pinned: allowed.is_ok_and(|allowed| allowed.count() == 1),
            }
        }
    }

    /// The node of each CPU.
    pub(crate) fn cpu_nodes() -> &'static [u32] {
        &NODES
    }

    fn read_nodes() -> Vec<u32> {
        let mut nodes = Vec::new();
        for entry in fs::read_dir("/sys/devices/system/node")
            .into_iter()
            .flatten()
            .flatten()
        {
            let name = entry.file_name().into_string().unwrap_or_default();
            let number = name
                .strip_prefix("node")
                .and_then(|n| n.parse::<u32>().ok());
            let list = fs::read_to_string(entry.path().join("cpulist"));
            if let (Some(number), Ok(list)) = (number, list) {
                for cpu in cpus_in(&list) {
                    if nodes.len() <= cpu {
                        nodes.resize(cpu + 1, 0);
                    }
                    nodes[cpu] = number;
                }
            }
        }
        nodes
    }

    /// `0-3,8` as the kernel writes it.
    fn cpus_in(list: &str) -> Vec<usize> {
        list.trim()
            .split(',')
            .filter_map(|part| {
                let (from, to) = part.split_once('-').unwrap_or((part, part));
                Some(from.parse().ok()?..=to.parse().ok()?)
            })
            .flatten()
            .collect()
    }

    #[cfg(test)]
    mod tests {
        #[test]
        fn lists_of_cpus_are_read() {
            assert_eq!(super::cpus_in("0-2,8\n"), [0, 1, 2, 8]);
            assert!(super::cpus_in("\n").is_empty());
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::sync::LazyLock;

    use many_cpus::SystemHardware;

    use super::Here;

    static NODES: LazyLock<Vec<u32>> = LazyLock::new(|| {
        let processors = SystemHardware::current().all_processors();
        let mut nodes = Vec::new();
        for processor in processors.processors() {
            let id = processor.id() as usize;
            if nodes.len() <= id {
                nodes.resize(id + 1, 0);
            }
            nodes[id] = processor.memory_region_id();
        }
        nodes
    });

    impl Here {
        // Other systems tell a thread's CPUs only in unsafe code, so only threads that `many_cpus`
        // has pinned count as pinned.
        pub(crate) fn now() -> Self {
            let hardware = SystemHardware::current();
            Self {
                cpu: hardware.current_processor_id() as usize,
                node: hardware.current_memory_region_id(),
                pinned: hardware.is_thread_processor_pinned(),
            }
        }
    }

    /// The node of each CPU.
    pub(crate) fn cpu_nodes() -> &'static [u32] {
        &NODES
    }
}

pub(crate) use self::system::cpu_nodes;
