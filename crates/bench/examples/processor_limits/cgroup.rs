//! A control group for one process, made and removed here. Linux only; elsewhere none can be made.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// A quota is so many of these microseconds in each period of 100,000.
const PERIOD_US: u32 = 100_000;

/// What a group limits.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Limit {
    /// The time of so many CPUs.
    Quota(f64),
    /// The same, set on the group above.
    QuotaAbove(f64),
    /// One CPU, by the controller `cpuset`.
    OneProcessor,
}

/// The limits of the table, with words for them.
pub(crate) const LIMITS: &[(&str, Limit)] = &[
    ("the group has one CPU", Limit::OneProcessor),
    ("the group's quota is 1.5", Limit::Quota(1.5)),
    ("the group's quota is 0.5", Limit::Quota(0.5)),
    (
        "the quota of the group above is 0.5",
        Limit::QuotaAbove(0.5),
    ),
];

/// Of the kernel's interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    One,
    Two,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::One => "v1",
            Self::Two => "v2",
        })
    }
}

/// A group, or one within another. Removed when dropped: its process must have ended by then.
#[derive(Debug)]
pub(crate) struct Group {
    /// From the inside to the outside, in the order in which they can be removed.
    folders: Vec<PathBuf>,
}

impl Group {
    /// A new group with this limit and nobody in it.
    pub(crate) fn limited(version: Version, limit: Limit) -> Result<Self, String> {
        let controller = match limit {
            Limit::OneProcessor => "cpuset",
            Limit::Quota(_) | Limit::QuotaAbove(_) => "cpu",
        };
        let mount = mount(version, controller)?;
        let outer = mount.join(format!("workshop-{}", std::process::id()));
        let mut group = Self {
            folders: Vec::new(),
        };
        group.make(outer.clone())?;
        match (limit, version) {
            (Limit::Quota(quota) | Limit::QuotaAbove(quota), Version::One) => {
                write(&outer.join("cpu.cfs_period_us"), &PERIOD_US.to_string())?;
                write(&outer.join("cpu.cfs_quota_us"), &micros(quota))?;
            }
            (Limit::Quota(quota) | Limit::QuotaAbove(quota), Version::Two) => {
                let text = format!("{} {PERIOD_US}", micros(quota));
                write(&outer.join("cpu.max"), &text)?;
            }
            (Limit::OneProcessor, version) => {
                if version == Version::One {
                    // Nobody can join before both are set.
                    let memory = fs::read_to_string(mount.join("cpuset.mems")).unwrap_or_default();
                    write(&outer.join("cpuset.mems"), memory.trim())?;
                }
                let first = loadgen::cpus::available();
                let first = first.first().ok_or("no CPU is known")?;
                write(&outer.join("cpuset.cpus"), &first.to_string())?;
            }
        }
        if matches!(limit, Limit::QuotaAbove(_)) {
            group.make(outer.join("within"))?;
        }
        Ok(group)
    }

    fn make(&mut self, folder: PathBuf) -> Result<(), String> {
        fs::create_dir(&folder).map_err(|error| format!("no group can be made ({error})"))?;
        self.folders.insert(0, folder);
        Ok(())
    }

    /// Makes a process a member.
    pub(crate) fn add(&self, process: u32) -> Result<(), String> {
        write(&self.folders[0].join("cgroup.procs"), &process.to_string())
    }

    /// A counter of its `cpu.stat`.
    pub(crate) fn counted(&self, key: &str) -> Option<u64> {
        let text = fs::read_to_string(self.folders[0].join("cpu.stat")).ok()?;
        text.lines()
            .find_map(|line| line.strip_prefix(key)?.trim().parse().ok())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for folder in &self.folders {
            // A group that is still in use stays; it is empty and limits nobody.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Where the controller is mounted, ready for groups.
fn mount(version: Version, controller: &str) -> Result<PathBuf, String> {
    let root = Path::new("/sys/fs/cgroup");
    if version == Version::One {
        let mount = root.join(controller);
        return if mount.join("cgroup.procs").exists() {
            Ok(mount)
        } else {
            Err("this version is not mounted".to_owned())
        };
    }
    let mount = [root.to_owned(), root.join("unified")]
        .into_iter()
        .find(|mount| mount.join("cgroup.controllers").exists())
        .ok_or("this version is not mounted")?;
    let there = fs::read_to_string(mount.join("cgroup.controllers")).unwrap_or_default();
    if !there.split_whitespace().any(|name| name == controller) {
        return Err(format!(
            "the controller `{controller}` is not with this version"
        ));
    }
    write(
        &mount.join("cgroup.subtree_control"),
        &format!("+{controller}"),
    )?;
    Ok(mount)
}

// Quotas here are a few CPUs.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn micros(quota: f64) -> String {
    ((quota * f64::from(PERIOD_US)) as u64).to_string()
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    let name = file.file_name().unwrap_or_default().display();
    fs::write(file, text).map_err(|error| format!("{name} cannot be written ({error})"))
}
