//! The CPU time that Linux control groups (v1 and v2) allow, and how
//! long they have held a process back. Elsewhere there are none.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

/// Returns the CPUs that the tightest quota above this process allows, such as 1.5; `None` without one.
pub fn limit() -> Option<f64> {
    limit_under(Path::new("/"))
}

/// Returns how long quotas have held back the groups of this process since they were made; `None` where that is not
/// counted. The difference over a run says how long the run was held back.
pub fn throttled_so_far() -> Option<Duration> {
    throttled_under(Path::new("/"))
}

fn limit_under(root: &Path) -> Option<f64> {
    let mut tightest: Option<f64> = None;
    for group in groups(root) {
        if let Some(limit) = limit_of(&group) {
            tightest = Some(tightest.unwrap_or(limit).min(limit));
        }
    }
    tightest
}

fn throttled_under(root: &Path) -> Option<Duration> {
    let mut sum = None;
    for group in groups(root) {
        if let Some(throttled) = throttled_of(&group) {
            sum = Some(sum.unwrap_or(Duration::ZERO) + throttled);
        }
    }
    sum
}

/// Returns the CPUs that a group's quota allows. `cpu.max` (v2) says `quota period` in µs or `max period`; v1 says the
/// same in two files, with a quota of -1 for none.
fn limit_of(group: &Path) -> Option<f64> {
    let text = if let Ok(text) = fs::read_to_string(group.join("cpu.max")) {
        text
    } else {
        let quota = fs::read_to_string(group.join("cpu.cfs_quota_us")).ok()?;
        let period = fs::read_to_string(group.join("cpu.cfs_period_us")).ok()?;
        format!("{quota} {period}")
    };
    let mut words = text.split_whitespace();
    let quota: f64 = words.next()?.parse().ok()?;
    let period: f64 = words.next()?.parse().ok()?;
    if quota > 0.0 && period > 0.0 {
        Some(quota / period)
    } else {
        None
    }
}

/// Returns how long a group was held back. `cpu.stat` counts in µs (v2) or ns (v1).
fn throttled_of(group: &Path) -> Option<Duration> {
    let text = fs::read_to_string(group.join("cpu.stat")).ok()?;
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(' ')?;
        let value = value.trim().parse().ok()?;
        match key {
            "throttled_usec" => Some(Duration::from_micros(value)),
            "throttled_time" => Some(Duration::from_nanos(value)),
            _ => None,
        }
    })
}

/// Returns the control groups of this process, each with those above it: a parent's quota binds too. Within a container
/// the path that the kernel names may not be mounted. Then the mount's own root is the group.
fn groups(root: &Path) -> Vec<PathBuf> {
    let Ok(memberships) = fs::read_to_string(root.join("proc/self/cgroup")) else {
        return Vec::new();
    };
    let mut groups = Vec::new();
    for line in memberships.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) =
            (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let mounts: &[&str] = if controllers.is_empty() {
            &["sys/fs/cgroup", "sys/fs/cgroup/unified"]
        } else if controllers.split(',').any(|name| name == "cpu") {
            &["sys/fs/cgroup/cpu", "sys/fs/cgroup/cpu,cpuacct"]
        } else {
            continue;
        };
        let Some(mount) = mounts
            .iter()
            .map(|mount| root.join(mount))
            .find(|mount| mount.join("cgroup.procs").exists())
        else {
            continue;
        };
        let own = mount.join(path.trim_start_matches('/'));
        let lowest = if own.is_dir() { own } else { mount.clone() };
        let up = lowest.ancestors().take_while(|up| up.starts_with(&mount));
        groups.extend(up.map(Path::to_owned));
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks what is read from `files`. Each line is a path and the text of that file.
    #[track_caller]
    fn says(files: &str, limit: Option<f64>, throttled_us: Option<u64>) {
        let root = tempfile::tempdir().unwrap();
        for file in files.lines() {
            let (path, text) = file.trim().split_once(' ').unwrap();
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text.replace('|', "\n")).unwrap();
        }
        assert_eq!(limit_under(root.path()), limit, "{files}");
        let throttled = throttled_us.map(Duration::from_micros);
        assert_eq!(throttled_under(root.path()), throttled, "{files}");
    }

    #[test]
    fn version_2_limits_by_the_tightest_group_above() {
        says(
            "proc/self/cgroup 0::/user/session|
             sys/fs/cgroup/cgroup.procs |
             sys/fs/cgroup/user/cpu.max 150000 100000|
             sys/fs/cgroup/user/session/cpu.max max 100000|
             sys/fs/cgroup/user/cpu.stat usage_usec 5|nr_throttled 3|throttled_usec 2500|
             sys/fs/cgroup/user/session/cpu.stat usage_usec 5|throttled_usec 500|",
            Some(1.5),
            Some(3000),
        );
    }

    #[test]
    fn version_1_limits_by_quota_and_period() {
        says(
            "proc/self/cgroup 4:memory:/x|2:cpu,cpuacct:/half|1:name=systemd:/|
             sys/fs/cgroup/cpu,cpuacct/cgroup.procs |
             sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us -1|
             sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us 100000|
             sys/fs/cgroup/cpu,cpuacct/half/cpu.cfs_quota_us 50000|
             sys/fs/cgroup/cpu,cpuacct/half/cpu.cfs_period_us 100000|
             sys/fs/cgroup/cpu,cpuacct/half/cpu.stat nr_periods 9|throttled_time 7000|",
            Some(0.5),
            Some(7),
        );
    }

    #[test]
    fn a_path_that_is_not_mounted_means_the_mounts_root() {
        says(
            "proc/self/cgroup 0::/docker/0123456789|
             sys/fs/cgroup/cgroup.procs |
             sys/fs/cgroup/cpu.max 200000 100000|",
            Some(2.0),
            None,
        );
    }

    #[test]
    fn a_system_without_control_groups_has_no_quota() {
        let of_version_2 = "proc/self/cgroup 0::/|
            sys/fs/cgroup/cgroup.procs |
            sys/fs/cgroup/cpu.max";
        says("", None, None);
        says("proc/self/cgroup nonsense|0:|", None, None);
        says(&format!("{of_version_2} max|"), None, None);
        says(&format!("{of_version_2} 0 0|"), None, None);
    }
}
