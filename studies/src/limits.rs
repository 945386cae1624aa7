//! Limits that Linux can set on a process: its CPUs, and its time by a control group of either version. Most need
//! root.

use std::process::{Command, Output};

use children::cpus;

use crate::Failed;

/// Makes a group `$G` of version 1 by its controller for time.
pub const V1_TIME: &str =
    "G=/sys/fs/cgroup/cpu/$GROUP && mkdir $G && echo 100000 >$G/cpu.cfs_period_us";
/// Makes a group `$G` of version 1 by its controller for CPUs.
pub const V1_CPUS: &str =
    "G=/sys/fs/cgroup/cpuset/$GROUP && mkdir $G && cat $G/../cpuset.mems >$G/cpuset.mems";
/// Makes a group `$G` of version 2.
pub const V2: &str = "R=/sys/fs/cgroup; [ -d $R/unified ] && R=$R/unified; for C in cpu cpuset; do \
    grep -qsw $C $R/cgroup.controllers || { echo \"version 2 does not have the controller $C here\" >&2; exit 1; }; \
    done; echo +cpu +cpuset >$R/cgroup.subtree_control && G=$R/$GROUP && mkdir $G";
/// Moves the shell, and what it starts, to the group `$G`.
pub const JOIN: &str = "echo $$ >$G/cgroup.procs";
/// Prints the statistics of the group `$G`.
const STATISTICS: &str = "cat $G/cpu.stat";

/// A group that was not made cannot be removed.
const REMOVE: &str = "for R in /sys/fs/cgroup /sys/fs/cgroup/*; do \
    rmdir $R/$GROUP/within; rmdir $R/$GROUP; done 2>/dev/null";

/// Runs this program with these arguments under the limit that `limit` sets, then the command `after`. Returns the
/// output of both.
pub fn under(limit: &str, arguments: &[&str], after: &str) -> Result<String, String> {
    let output = shell(&format!(r#"{limit} && "$0" "$@" && {after}"#), arguments);
    shell(REMOVE, arguments)?;
    let output = output?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let reason = said.lines().next().unwrap_or("it cannot be set");
    Err(reason.to_owned())
}

/// Runs a script that finds this program in `$0` and the arguments in `$@`.
fn shell(script: &str, arguments: &[&str]) -> Result<Output, String> {
    let mut shell = Command::new("sh");
    shell.args(["-c", script]);
    shell.arg(std::env::current_exe().unwrap_or_default());
    shell.env_remove("TOKIO_WORKER_THREADS");
    shell.env("GROUP", format!("study-{}", std::process::id()));
    shell.env("FIRST", cpus::available().first().unwrap_or(&0).to_string());
    let output = shell.args(arguments).output();
    output.map_err(|error| error.to_string())
}

/// Runs this program with these arguments in a group with the time of `cpus` CPUs. The group outranks other programs, so
/// that the quota limits it and not they. Returns the output, and the group's `cpu.stat` below it.
pub fn under_quota(cpus: u32, arguments: &[&str]) -> Result<String, Failed> {
    let time = cpus * 100_000;
    let v2 = format!("{V2} && echo 10000 >$G/cpu.weight && echo {time} 100000 >$G/cpu.max");
    let v1 = format!("{V1_TIME} && echo 262144 >$G/cpu.shares && echo {time} >$G/cpu.cfs_quota_us");
    let join = format!("export G && {JOIN}");
    if let Ok(said) = under(&format!("{v2} && {join}"), arguments, STATISTICS) {
        return Ok(said);
    }
    Ok(under(&format!("{v1} && {join}"), arguments, STATISTICS)?)
}

/// Returns a count of `cpu.stat`; `None` where it is not in it.
pub fn counted(stat: &str, key: &str) -> Option<f64> {
    let value = stat.lines().find_map(|line| line.strip_prefix(key))?;
    value.parse().ok()
}
