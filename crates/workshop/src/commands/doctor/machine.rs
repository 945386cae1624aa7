//! CPUs, quota, frequency governor, memory, the kernel's tick, open files, and the documented ports.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener};

use bench::environment;
use measurement::environment::Environment;

use super::finding::Finding;

/// Files that a server or generator opens beside its connections.
const BESIDE: u64 = 100;

pub(super) fn look() -> Vec<Finding> {
    let here = environment::observe(true, "", BTreeMap::new());
    let mut findings = vec![
        Finding::ok("system", format!("{}, kernel {}", here.system, here.kernel)),
        cpus(&here),
        quota(&here),
    ];
    findings.extend(here.governor.as_deref().map(governor));
    findings.push(memory(here.memory_mib));
    findings.extend(tick());
    findings
}

fn cpus(here: &Environment) -> Finding {
    let found = format!(
        "{} usable of {}, {}",
        here.cpus_usable, here.cpus_online, here.cpu_model
    );
    match here.cpus_usable {
        1 => Finding::note(
            "CPUs",
            found,
            "server and generator share it: figures are lower, and some claims cannot be shown",
        ),
        _ => Finding::ok("CPUs", found),
    }
}

fn quota(here: &Environment) -> Finding {
    match here.quota {
        Some(quota) if quota < f64::from(here.cpus_usable) => Finding::note(
            "CPU quota",
            format!("{quota:.1} CPUs"),
            "a run that the quota holds back is invalid: raise it (docker run --cpus) or remove it",
        ),
        _ => Finding::ok("CPU quota", "none that binds"),
    }
}

fn governor(name: &str) -> Finding {
    match name {
        "performance" | "schedutil" => Finding::ok("governor", name),
        _ => Finding::note(
            "governor",
            name,
            "the clock follows the load, which adds noise: sudo cpupower frequency-set -g \
             performance, on mains power",
        ),
    }
}

fn memory(mib: u64) -> Finding {
    let found = format!("{:.1} GiB", mib as f64 / 1024.0);
    if mib < 3 * 1024 {
        Finding::note(
            "memory",
            found,
            "compiling wants about 3 GiB: CARGO_BUILD_JOBS=1 makes it do with less",
        )
    } else {
        Finding::ok("memory", found)
    }
}

/// What `/proc/sys/kernel/osrelease` names, as distributions ship it under `/boot`.
fn tick() -> Option<Finding> {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    let config = std::fs::read_to_string(format!("/boot/config-{}", release.trim())).ok()?;
    let tick = tick_in(&config)?;
    Some(Finding::ok(
        "kernel tick",
        format!("{tick} Hz: CPU profiles get at most {tick} samples a second of CPU time"),
    ))
}

fn tick_in(config: &str) -> Option<u32> {
    let mut lines = config.lines();
    let hertz = lines.find_map(|line| line.strip_prefix("CONFIG_HZ="))?;
    hertz.parse().ok()
}

/// Looks at the limits that a load with `users` users meets.
pub(super) fn limits(users: u32) -> Vec<Finding> {
    vec![
        open_files(u64::from(users) + BESIDE),
        port("port 8080", 8080, "the service"),
        port("port 6060", 6060, "profiles and counters"),
    ]
}

fn open_files(needed: u64) -> Finding {
    match loadgen::cpus::allow_open_files(needed) {
        Ok(()) => Finding::ok(
            "open files",
            format!("{needed} can be had, as the largest load needs"),
        ),
        Err(limit) => Finding::note(
            "open files",
            format!("{} at most", limit.allowed),
            format!(
                "the largest load needs {needed}: ulimit -n {needed} (as root if it refuses), or \
                 fewer users with --users"
            ),
        ),
    }
}

/// Tried and let go: nobody else can tell whether a port is free.
fn port(name: &'static str, number: u16, whose: &str) -> Finding {
    match TcpListener::bind((Ipv4Addr::LOCALHOST, number)) {
        Ok(_) => Finding::ok(name, format!("free for {whose}")),
        Err(error) => Finding::note(
            name,
            format!("taken ({error})"),
            "cargo run -p chapter1 then needs --port or --admin-port; prove and check pick free ones",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::finding::State;

    #[test]
    fn the_tick_is_read_from_the_kernels_configuration() {
        assert_eq!(tick_in("CONFIG_HZ_250=y\nCONFIG_HZ=250\n"), Some(250));
        assert_eq!(tick_in("# nothing\n"), None);
    }

    #[test]
    fn a_quota_below_the_cpus_is_told() {
        let machine = |quota| Environment {
            cpus_usable: 2,
            quota,
            ..Environment::default()
        };
        assert_eq!(quota(&machine(None)).state, State::Ok);
        assert_eq!(quota(&machine(Some(2.0))).state, State::Ok);
        assert_eq!(quota(&machine(Some(1.5))).state, State::Note);
    }

    #[test]
    fn a_governor_that_follows_the_load_is_told() {
        assert_eq!(governor("performance").state, State::Ok);
        assert_eq!(governor("powersave").state, State::Note);
    }
}
