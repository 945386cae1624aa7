//! What a tree of processes uses, as Linux tells it under `/proc`; nothing elsewhere.

use std::collections::BTreeMap;
use std::fs;

/// One living process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub id: u32,
    parent: u32,
    group: u32,
    /// Whether it has ended and was not waited for: its children may still be alive.
    is_over: bool,
    /// Scheduler ticks of CPU time, those of its ended children included.
    ticks: u64,
}

/// Scheduler ticks in a second, as `/proc` counts: `USER_HZ`, which Linux has fixed at 100 (proc(5)).
pub const TICKS_A_SECOND: f64 = 100.0;

/// The living processes that `ancestor` started, and those that these did; `None` where the system
/// does not tell.
pub fn below(ancestor: u32) -> Option<Vec<Process>> {
    let mut children: BTreeMap<u32, Vec<Process>> = BTreeMap::new();
    for process in all()? {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = children.remove(&ancestor).unwrap_or_default();
    let mut next = 0;
    while let Some(one) = found.get(next) {
        let more = children.remove(&one.id).unwrap_or_default();
        found.extend(more);
        next += 1;
    }
    found.retain(|one| !one.is_over);
    Some(found)
}

/// As [`below`], with `ancestor` itself.
pub fn from(ancestor: u32) -> Option<Vec<Process>> {
    let mut found = below(ancestor)?;
    found.extend(one(ancestor));
    Some(found)
}

/// Whether a process of this group lives; no where the system does not tell.
pub fn is_any_in(group: u32) -> bool {
    let mut all = all().into_iter().flatten();
    all.any(|one| one.group == group && !one.is_over)
}

fn all() -> Option<Vec<Process>> {
    let entries = fs::read_dir("/proc").ok()?.flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let all: Vec<Process> = ids.filter_map(one).collect();
    (!all.is_empty()).then_some(all)
}

fn one(id: u32) -> Option<Process> {
    process_in(id, &fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
}

fn process_in(id: u32, stat: &str) -> Option<Process> {
    // The name in parentheses may hold anything; the fields begin after it.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let ticks = fields
        .get(11..15)?
        .iter()
        .map(|field| field.parse::<u64>().ok());
    Some(Process {
        id,
        is_over: matches!(fields[0], "Z" | "X"),
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        ticks: ticks.sum::<Option<u64>>()?,
    })
}

/// CPU seconds that they have used.
pub fn cpu_seconds(processes: &[Process]) -> f64 {
    processes.iter().map(|one| one.ticks).sum::<u64>() as f64 / TICKS_A_SECOND
}

/// The most memory that each of them held at once, in bytes, added up.
pub fn peak_memory(processes: &[Process]) -> Option<f64> {
    let peaks = processes.iter().map(|one| {
        let status = fs::read_to_string(format!("/proc/{}/status", one.id)).ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))?;
        let kib: f64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
        Some(kib * 1024.0)
    });
    // A process may end between being found and being asked.
    let peaks: Vec<f64> = peaks.flatten().collect();
    (!peaks.is_empty()).then(|| peaks.iter().sum())
}

/// CPU seconds that these CPUs spent on programs, or that the machine below them took, since they
/// were switched on. Interrupts are left out: they serve the load.
pub fn busy_seconds(cpus: &[usize]) -> Option<f64> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let ticks = cpus.iter().map(|cpu| {
        let [user, nice, system, .., stolen] = cpu_ticks(&text, &format!("cpu{cpu}"))?;
        Some(user + nice + system + stolen)
    });
    let ticks: u64 = ticks.sum::<Option<u64>>()?;
    Some(ticks as f64 / TICKS_A_SECOND)
}

/// Of a line of `/proc/stat`: user, nice, system, idle, waiting, interrupts, soft interrupts, stolen.
pub fn cpu_ticks(stat: &str, name: &str) -> Option<[u64; 8]> {
    let mut lines = stat.lines().map(str::split_ascii_whitespace);
    let fields = lines.find_map(|mut words| (words.next() == Some(name)).then_some(words))?;
    let fields: Vec<u64> = fields.map_while(|field| field.parse().ok()).collect();
    fields.get(..8)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_name() {
        let stat = "7 (a) b (c) S 3 6 7 0 -1 4194560 1 2 3 4 50 20 5 1 20 0 3 0 100";
        let process = process_in(7, stat).unwrap();
        assert_eq!((process.parent, process.group, process.ticks), (3, 6, 76));
        assert!(!process.is_over);
        assert!(process_in(7, &stat.replace(" S ", " Z ")).unwrap().is_over);
        assert!(process_in(7, "7 (a) S 3").is_none());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_is_below_its_parent_and_uses_something() {
        let parent = std::os::unix::process::parent_id();
        let found = below(parent).unwrap();
        assert!(found.iter().any(|one| one.id == std::process::id()));
        assert!(peak_memory(&found).unwrap() > 1024.0 * 1024.0);
        assert!(busy_seconds(&[]) == Some(0.0));
    }
}
