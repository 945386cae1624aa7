//! Memory that this process may still take, and the memory that looking names up takes.

use std::fs;
use std::path::{Path, PathBuf};

use crate::allocator::Allocator;
use crate::error::EndpointError;
use crate::own_status::{own_status, status_field};

const MIB: u64 = 1 << 20;

/// Memory that a profile takes besides the program's debug information: samples, tables, and the text of its stacks.
const OF_PROFILE: u64 = 48 * MIB;

/// Most resident memory of a program whose allocator is asked to give back what a profile took. In larger programs that
/// is a small part, and the allocator holds its locks while it gives back.
const MOST_GIVEN_BACK: u64 = 1024 * MIB;

/// A limit of the system, and the memory that it leaves.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) limit: String,
    /// Bytes that may still be taken.
    pub(crate) bytes: u64,
    /// All bytes that the limit allows.
    pub(crate) of: u64,
}

/// Memory that a look at tasks takes at most. The program's debug information is not in it: the system can take that back.
#[cfg(feature = "tasks")]
const OF_TASKS: u64 = 100 * MIB;

/// Returns an error if a limit of the system leaves too little memory for a profile: the system would kill the service.
pub(crate) fn is_enough() -> Result<(), EndpointError> {
    leaves(
        needed(),
        "a profile",
        "for the names of this program's functions",
        "take the profile from outside, with perf",
    )
}

/// Returns an error if a limit of the system leaves too little memory for a look at tasks.
#[cfg(feature = "tasks")]
#[allow(dead_code)] // Not every system has them.
pub(crate) fn is_enough_for_tasks() -> Result<(), EndpointError> {
    leaves(
        OF_TASKS,
        "a look at tasks",
        "for the types of this program",
        "look from outside, with `duel look --pid`",
    )
}

fn leaves(needed: u64, who: &str, why: &str, instead: &str) -> Result<(), EndpointError> {
    let Some(left) = least_left() else {
        return Ok(());
    };
    if left.bytes >= needed {
        return Ok(());
    }
    Err(EndpointError::Unavailable(format!(
        "{who} may take {} MiB of memory {why}, and {} leaves {} MiB: raise that limit, or {instead}. The service would be \
         ended for want of memory",
        needed / MIB,
        left.limit,
        left.bytes / MIB,
    )))
}

/// Returns the bytes that a profile may take at its peak. A larger program has more debug information to read: a
/// program of 40 MB took 85 MB for a look.
fn needed() -> u64 {
    let program = fs::metadata("/proc/self/exe").map_or(0, |file| file.len());
    OF_PROFILE + program * 3 / 2
}

/// Returns the limit that leaves least.
pub(crate) fn least_left() -> Option<Left> {
    let mut all = of_process();
    all.extend(of_cgroup());
    all.into_iter().min_by_key(|left| left.bytes)
}

/// Returns the limits that `ulimit` has set for this process.
fn of_process() -> Vec<Left> {
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let status = own_status().unwrap_or_default();
    let mut all = Vec::new();
    for (name, used, called) in [
        ("Max data size", "VmData:", "RLIMIT_DATA (`ulimit -d`)"),
        ("Max address space", "VmSize:", "RLIMIT_AS (`ulimit -v`)"),
    ] {
        let Some(limit) = soft_limit(&limits, name) else {
            continue;
        };
        if let Some(kib) = status_field(&status, used) {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            // A whole number of KiB.
            let used = kib as u64 * 1024;
            all.push(Left {
                limit: called.to_owned(),
                bytes: limit.saturating_sub(used),
                of: limit,
            });
        }
    }
    all
}

/// Returns the soft limit in a line such as `Max data size    67108864    unlimited    bytes`, or `None` if it is
/// `unlimited`.
fn soft_limit(limits: &str, name: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Returns the limits of the cgroups that this process is in: its own and those around it.
fn of_cgroup() -> Vec<Left> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut all = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        let (root, files) = if controllers.is_empty() {
            ("/sys/fs/cgroup", &OF_VERSION_2)
        } else if controllers.split(',').any(|one| one == "memory") {
            ("/sys/fs/cgroup/memory", &OF_VERSION_1)
        } else {
            continue;
        };
        // In a container, the path may be that of the host, and the group the root.
        let own = PathBuf::from(format!("{root}{path}"));
        for folder in own
            .ancestors()
            .take_while(|folder| folder.starts_with(root))
        {
            all.extend(left_in(folder, files));
        }
    }
    all
}

/// Names of a cgroup's files with its limit and use.
struct Files {
    limit: &'static str,
    used: &'static str,
    /// Fields of `memory.stat` for cached files, which the kernel drops before it kills a process.
    cached: [&'static str; 2],
}

const OF_VERSION_2: Files = Files {
    limit: "memory.max",
    used: "memory.current",
    cached: ["active_file ", "inactive_file "],
};

const OF_VERSION_1: Files = Files {
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    cached: ["total_active_file ", "total_inactive_file "],
};

fn left_in(group: &Path, files: &Files) -> Option<Left> {
    let read = |name: &str| fs::read_to_string(group.join(name)).ok();
    // The file says `max` if there is no limit.
    let limit: u64 = read(files.limit)?.trim().parse().ok()?;
    let used: u64 = read(files.used)?.trim().parse().ok()?;
    let stat = read("memory.stat").unwrap_or_default();
    let mut cached = 0;
    for line in stat.lines() {
        for name in files.cached {
            if let Some(Ok(bytes)) = line.strip_prefix(name).map(str::parse::<u64>) {
                cached += bytes;
            }
        }
    }
    Some(Left {
        limit: format!("{} of its container", files.limit),
        bytes: limit.saturating_sub(used.saturating_sub(cached)),
        of: limit,
    })
}

/// Has the allocator give back what it keeps, after work that took much memory for a short time.
pub(crate) fn give_back() {
    let resident = own_status().and_then(|status| status_field(&status, "VmRSS:"));
    let is_small = resident.is_some_and(|kib| kib * 1024.0 < MOST_GIVEN_BACK as f64);
    if is_small && let Some(allocator) = Allocator::of_this_process() {
        allocator.give_back();
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_the_process_is_read_and_none_is_none() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
            Max data size             67108864             unlimited            bytes     \n\
            Max address space         unlimited            unlimited            bytes     \n";
        assert_eq!(soft_limit(limits, "Max data size"), Some(64 * MIB));
        assert_eq!(soft_limit(limits, "Max address space"), None);
        assert_eq!(soft_limit("", "Max data size"), None);
    }

    #[test]
    fn a_cgroup_leaves_its_limit_without_what_is_used_and_cannot_be_dropped() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            fs::write(folder.path().join(name), text).expect("written");
        };
        assert_eq!(left_in(folder.path(), &OF_VERSION_2), None);
        write("memory.max", "max\n");
        write("memory.current", "104857600\n");
        assert_eq!(left_in(folder.path(), &OF_VERSION_2), None);
        write("memory.max", "134217728\n");
        write(
            "memory.stat",
            "anon 83886080\ninactive_file 10485760\nactive_file 1048576\n",
        );
        let left = left_in(folder.path(), &OF_VERSION_2).expect("a limit");
        assert_eq!(left.bytes, (128 - 100 + 11) * MIB);
        assert_eq!(left.limit, "memory.max of its container");
    }
}
