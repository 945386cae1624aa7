//! Where the calling thread runs, by the system's word and nobody else's.

/// The processor of this moment, its memory region, and whether the thread can leave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Here {
    pub(crate) processor: usize,
    pub(crate) region: u32,
    /// The system lets the thread run on this processor only.
    pub(crate) pinned: bool,
}

#[cfg(target_os = "linux")]
mod system {
    use std::fs;
    use std::sync::LazyLock;

    use super::Here;

    static REGIONS: LazyLock<Vec<u32>> = LazyLock::new(read_regions);

    impl Here {
        pub(crate) fn now() -> Self {
            let processor = page_regions::processor().unwrap_or(0);
            let allowed = rustix::thread::sched_getaffinity(None);
            Self {
                processor,
                region: REGIONS.get(processor).copied().unwrap_or(0),
                pinned: allowed.is_ok_and(|allowed| allowed.count() == 1),
            }
        }
    }

    /// The region of each processor.
    pub(crate) fn regions() -> &'static [u32] {
        &REGIONS
    }

    fn read_regions() -> Vec<u32> {
        let mut regions = Vec::new();
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
                for processor in processors_in(&list) {
                    if regions.len() <= processor {
                        regions.resize(processor + 1, 0);
                    }
                    regions[processor] = number;
                }
            }
        }
        regions
    }

    /// `0-3,8` as the kernel writes it.
    fn processors_in(list: &str) -> Vec<usize> {
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
        fn lists_of_processors_are_read() {
            assert_eq!(super::processors_in("0-2,8\n"), [0, 1, 2, 8]);
            assert!(super::processors_in("\n").is_empty());
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::sync::LazyLock;

    use many_cpus::SystemHardware;

    use super::Here;

    static REGIONS: LazyLock<Vec<u32>> = LazyLock::new(|| {
        let processors = SystemHardware::current().all_processors();
        let mut regions = Vec::new();
        for processor in processors.processors() {
            let id = processor.id() as usize;
            if regions.len() <= id {
                regions.resize(id + 1, 0);
            }
            regions[id] = processor.memory_region_id();
        }
        regions
    });

    impl Here {
        // No other system tells a thread's processors in safe code, so only what was bound by
        // `many_cpus` counts.
        pub(crate) fn now() -> Self {
            let hardware = SystemHardware::current();
            Self {
                processor: hardware.current_processor_id() as usize,
                region: hardware.current_memory_region_id(),
                pinned: hardware.is_thread_processor_pinned(),
            }
        }
    }

    /// The region of each processor.
    pub(crate) fn regions() -> &'static [u32] {
        &REGIONS
    }
}

pub(crate) use self::system::regions;

#[cfg(test)]
pub(crate) fn pin_to_this_processor() -> bool {
    #[cfg(target_os = "linux")]
    {
        let mut only = rustix::thread::CpuSet::new();
        only.set(rustix::thread::sched_getcpu());
        rustix::thread::sched_setaffinity(None, &only).is_ok()
    }
    #[cfg(not(target_os = "linux"))]
    {
        false
    }
}
