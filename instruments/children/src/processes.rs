//! Resource use of a tree of processes, as Linux reports it under `/proc`. Other systems report nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[cfg(unix)]
use rustix::process::Pid;

/// One living process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub id: u32,
    parent: u32,
    group: u32,
    /// Set if it has ended and was not waited for. Its children may still be alive.
    is_over: bool,
    /// CPU time in scheduler ticks, including that of its ended children.
    ticks: u64,
}

/// Scheduler ticks in a second, as `/proc` counts: `USER_HZ`, which Linux has fixed at 100 (proc(5)).
const TICKS_A_SECOND: f64 = 100.0;

/// Name of the variable that holds a child's number, in the environment of all that it starts.
pub(super) const MARK: &str = "STARTED_BY_CHILD";

/// Makes this process the parent of what its descendants leave behind (Linux).
pub(super) fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{getpid, set_child_subreaper};

        // If the system refuses, daemons are not adopted.
        let _ = set_child_subreaper(Some(getpid()));
    }
}

/// Waits for killed processes that this process has adopted, because no other process would. They are `killed`, and
/// what is left of `group` once its first process has been waited for.
pub(super) fn bury(group: u32, killed: &[Process]) {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{WaitOptions, waitpgid, waitpid};

        for process in killed {
            if let Some(pid) = pid(process.id) {
                wait(&|| waitpid(Some(pid), WaitOptions::NOHANG));
            }
        }
        if let Some(group) = pid(group) {
            wait(&|| waitpgid(group, WaitOptions::NOHANG));
        }
    }
    let _ = (group, killed);
}

/// Result of asking the system whether a process has ended.
#[cfg(target_os = "linux")]
type Waited = rustix::io::Result<Option<(Pid, rustix::process::WaitStatus)>>;

/// Calls `waited` until nothing is left to wait for. A process that hangs in the kernel stays until this process ends.
#[cfg(target_os = "linux")]
fn wait(waited: &dyn Fn() -> Waited) {
    for _ in 0..20 {
        match waited() {
            Ok(None) => std::thread::sleep(std::time::Duration::from_millis(5)),
            Ok(Some(_)) => {}
            Err(_) => break,
        }
    }
}

/// Returns the number of a process or group as the system's calls take it; `None` for 0 and above `i32::MAX`.
#[cfg(unix)]
pub(super) fn pid(id: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(id).ok()?)
}

/// Returns the living descendants of `ancestor`; `None` where the system does not tell. If `ancestor` is a child of
/// this process, its daemons are among them, even if their own parents have ended.
pub(crate) fn below(ancestor: u32) -> Option<Vec<Process>> {
    let this = std::process::id();
    let mut children: BTreeMap<u32, Vec<Process>> = BTreeMap::new();
    for process in all()? {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = children.remove(&ancestor).unwrap_or_default();
    if ancestor != this {
        for adopted in children.remove(&this).unwrap_or_default() {
            if adopted.id != ancestor && adopted.was_started_by(ancestor) {
                found.push(adopted);
            }
        }
    }
    let mut next = 0;
    while let Some(one) = found.get(next) {
        let more = children.remove(&one.id).unwrap_or_default();
        found.extend(more);
        next += 1;
    }
    found.retain(|one| !one.is_over);
    Some(found)
}

/// Returns `ancestor` and its living descendants; `None` where the system does not tell. If `ancestor` is a child of
/// this process, its daemons are among them, even if their own parents have ended.
pub fn from(ancestor: u32) -> Option<Vec<Process>> {
    let mut found = below(ancestor)?;
    found.extend(one(ancestor));
    Some(found)
}

/// Returns whether a process of this group lives; `false` where the system does not tell.
pub(crate) fn is_any_in(group: u32) -> bool {
    let mut all = all().into_iter().flatten();
    all.any(|one| one.group == group && !one.is_over)
}

impl Process {
    /// Returns whether its environment names `child` as its starter.
    fn was_started_by(&self, child: u32) -> bool {
        let environment = fs::read(format!("/proc/{}/environ", self.id)).unwrap_or_default();
        let mark = format!("{MARK}={child}");
        let mut variables = environment.split(|byte| *byte == 0);
        variables.any(|variable| variable == mark.as_bytes())
    }
}

fn all() -> Option<Vec<Process>> {
    let mut all = Vec::new();
    for entry in fs::read_dir("/proc").ok()?.flatten() {
        if let Ok(id) = entry.file_name().to_string_lossy().parse() {
            all.extend(one(id));
        }
    }
    if all.is_empty() { None } else { Some(all) }
}

fn one(id: u32) -> Option<Process> {
    process_in(id, &fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
}

fn process_in(id: u32, stat: &str) -> Option<Process> {
    // The name in parentheses may hold anything; the fields begin after it.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let mut ticks = 0;
    for field in fields.get(11..15)? {
        ticks += field.parse::<u64>().ok()?;
    }
    Some(Process {
        id,
        is_over: matches!(fields[0], "Z" | "X"),
        parent: fields[1].parse().ok()?,
        group: fields[2].parse().ok()?,
        ticks,
    })
}

/// Returns the CPU seconds that these processes have used.
pub fn cpu_seconds(processes: &[Process]) -> f64 {
    processes.iter().map(|one| one.ticks).sum::<u64>() as f64 / TICKS_A_SECOND
}

/// Returns the sum of the most memory that each of them held at once, in bytes.
pub fn peak_memory(processes: &[Process]) -> Option<f64> {
    let mut sum = None;
    for one in processes {
        // A process may end between being found and being asked.
        if let Some(bytes) = peak_memory_of(one.id) {
            sum = Some(sum.unwrap_or(0.0) + bytes);
        }
    }
    sum
}

fn peak_memory_of(id: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kib * 1024.0)
}

/// Returns how long the thread with this folder under `/proc` has been ready to run without getting a CPU. The time
/// grows while something else keeps its CPU busy.
pub fn waited_for_cpu(thread: &Path) -> Option<Duration> {
    // Three numbers: nanoseconds on a CPU, nanoseconds waiting for one, time slices.
    let text = fs::read_to_string(thread.join("schedstat")).ok()?;
    let waited = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(Duration::from_nanos(waited))
}

/// Returns the time of [`waited_for_cpu`] of all threads of a process together.
pub(crate) fn all_waited_for_cpu(process: u32) -> Option<Duration> {
    let mut sum = Duration::ZERO;
    for thread in fs::read_dir(format!("/proc/{process}/task")).ok()? {
        sum += waited_for_cpu(&thread.ok()?.path())?;
    }
    Some(sum)
}

/// CPU time that each thread of some programs has wanted up to a moment: what it used, and what it waited for.
#[derive(Debug, Clone)]
pub struct CpuWanted {
    at: Instant,
    threads: BTreeMap<PathBuf, Wanted>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Wanted {
    used: Duration,
    waited: Duration,
    /// Number of times that the thread went to sleep by itself.
    slept: u64,
}

/// Largest share of the time for which a thread may want a CPU and counts as idle.
const IDLE: f64 = 0.5;
/// Number of sleeps in an interval from which a thread counts as idle if it used next to nothing: it ticks. On a busy
/// machine such a thread waits for a CPU most of the time, and yet runs out of work after each tick.
const SLEEPS: u64 = 10;
/// Largest share of the time for which a thread that ticks uses a CPU.
const TICKS: f64 = 0.05;

impl CpuWanted {
    /// Reads the time of all threads of `process` and of the calling thread. Returns `None` if the system does not
    /// report this.
    pub fn by(process: u32) -> Option<Self> {
        let own = fs::read_link("/proc/thread-self").ok()?;
        let mut folders = vec![Path::new("/proc").join(own)];
        for thread in fs::read_dir(format!("/proc/{process}/task")).ok()? {
            folders.push(thread.ok()?.path());
        }
        let mut threads = BTreeMap::new();
        for folder in folders {
            // A thread may end between being found and being asked.
            if let Some(wanted) = wanted_by(&folder) {
                threads.insert(folder, wanted);
            }
        }
        Some(Self {
            at: Instant::now(),
            threads,
        })
    }

    /// Returns whether neither `process` nor the calling thread has lacked a CPU since `before`; `false` where the system
    /// does not report this.
    pub fn is_idle_since(before: Option<&Self>, process: u32) -> bool {
        match (before, Self::by(process)) {
            (Some(before), Some(now)) => before.was_idle_until(&now),
            _ => false,
        }
    }

    /// Returns whether no thread lacked a CPU between `self` and `later`: each was asleep for most of the time, or only
    /// ticked. Programs that are idle wait for something that no other program takes from them.
    fn was_idle_until(&self, later: &Self) -> bool {
        let time = later.at.duration_since(self.at);
        later.threads.iter().all(|(folder, now)| {
            let before = self.threads.get(folder).copied().unwrap_or_default();
            let used = now.used.saturating_sub(before.used);
            let wanted = used + now.waited.saturating_sub(before.waited);
            let slept = now.slept.saturating_sub(before.slept);
            wanted < time.mul_f64(IDLE) || slept >= SLEEPS && used < time.mul_f64(TICKS)
        })
    }
}

fn wanted_by(thread: &Path) -> Option<Wanted> {
    let text = fs::read_to_string(thread.join("schedstat")).ok()?;
    let mut numbers = text.split_ascii_whitespace();
    let used: u64 = numbers.next()?.parse().ok()?;
    let waited: u64 = numbers.next()?.parse().ok()?;
    let status = fs::read_to_string(thread.join("status")).ok()?;
    let slept = status
        .lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
    Some(Wanted {
        used: Duration::from_nanos(used),
        waited: Duration::from_nanos(waited),
        slept: slept.trim().parse().ok()?,
    })
}

/// CPU time of some CPUs up to a moment, and that of the programs which are measured on them.
#[derive(Debug, Clone, Copy)]
pub struct CpuTimes {
    at: Instant,
    cpus: usize,
    /// Busy seconds of all these CPUs together.
    busy_s: f64,
    /// CPU seconds of the measured programs.
    own_s: f64,
}

impl CpuTimes {
    /// Reads the time of `cpus`, or of the whole machine if that is empty. `own_s` is the CPU time of the measured
    /// programs so far, in seconds. Returns `None` if the system does not report this.
    pub fn now(cpus: &[usize], own_s: f64) -> Option<Self> {
        let stat = fs::read_to_string("/proc/stat").ok()?;
        let all = all_cpus(&stat);
        let cpus = if cpus.is_empty() { &all } else { cpus };
        Some(Self {
            at: Instant::now(),
            cpus: cpus.len(),
            busy_s: busy_seconds_in(&stat, cpus)?,
            own_s,
        })
    }

    /// Returns the share (0 to 1) of the CPUs' time between `self` and `later` that other programs used, or that the
    /// host gave to other machines.
    pub fn used_by_others(&self, later: &Self) -> f64 {
        let used = (later.busy_s - self.busy_s) - (later.own_s - self.own_s);
        let all = later.at.duration_since(self.at).as_secs_f64() * self.cpus as f64;
        if all > 0.0 {
            (used / all).clamp(0.0, 1.0)
        } else {
            0.0
        }
    }
}

/// Returns the CPU seconds since boot that these CPUs spent on programs, or that the hypervisor took. Leaves out
/// interrupts, because they serve the load.
pub fn busy_seconds(cpus: &[usize]) -> Option<f64> {
    busy_seconds_in(&fs::read_to_string("/proc/stat").ok()?, cpus)
}

fn busy_seconds_in(stat: &str, cpus: &[usize]) -> Option<f64> {
    let mut ticks = 0;
    for cpu in cpus {
        let [user, nice, system, .., stolen] = cpu_ticks(stat, &format!("cpu{cpu}"))?;
        ticks += user + nice + system + stolen;
    }
    Some(ticks as f64 / TICKS_A_SECOND)
}

/// Returns the CPUs that `/proc/stat` has a line for.
fn all_cpus(stat: &str) -> Vec<usize> {
    let mut cpus = Vec::new();
    for line in stat.lines() {
        let name = line.split_ascii_whitespace().next().unwrap_or_default();
        let number = name.strip_prefix("cpu").unwrap_or_default();
        cpus.extend(number.parse::<usize>().ok());
    }
    cpus
}

/// Returns the ticks in the line `name` of `/proc/stat`: user, nice, system, idle, waiting, interrupts, soft
/// interrupts, stolen.
fn cpu_ticks(stat: &str, name: &str) -> Option<[u64; 8]> {
    for line in stat.lines() {
        let mut words = line.split_ascii_whitespace();
        if words.next() == Some(name) {
            let mut ticks = [0; 8];
            for tick in &mut ticks {
                *tick = words.next()?.parse().ok()?;
            }
            return Some(ticks);
        }
    }
    None
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

    #[test]
    fn busy_and_stolen_time_is_told_from_idle_time_and_interrupts() {
        let stat = "cpu  100 20 30 9000 500 1 2 47 8 0\n\
                    cpu0 60 20 10 4000 250 1 1 40 4 0\n\
                    cpu1 40 0 20 5000 250 0 1 7 4 0\nintr 5\n";
        assert_eq!(all_cpus(stat), [0, 1]);
        assert_eq!(busy_seconds_in(stat, &[0, 1]), Some(1.97));
        assert_eq!(busy_seconds_in(stat, &[0]), Some(1.3));
        assert_eq!(busy_seconds_in("cpu 1\ncpu0 1\n", &[0]), None);
    }

    #[test]
    fn time_that_the_measured_programs_did_not_use_is_of_others() {
        let at = Instant::now();
        let times = |after: u64, busy_s: f64, own_s: f64| CpuTimes {
            at: at + Duration::from_secs(after),
            cpus: 2,
            busy_s,
            own_s,
        };
        let began = times(0, 100.0, 10.0);
        // Eight seconds of two CPUs: ten were busy, and the measured programs used six of them.
        let share = began.used_by_others(&times(8, 110.0, 16.0));
        assert!((share - 0.25).abs() < 1e-9, "{share}");
        // The two clocks have different steps.
        assert!(began.used_by_others(&times(8, 105.0, 16.0)) == 0.0);
        assert!(began.used_by_others(&began) == 0.0);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_is_idle_unless_one_of_its_threads_wants_a_cpu() {
        use std::process::{Command, Stdio};

        let idle = |script: &str| {
            let mut shell = Command::new("sh");
            let child = shell.args(["-c", script]).stdin(Stdio::piped()).spawn();
            let mut child = child.unwrap();
            let before = CpuWanted::by(child.id());
            // The time of a thread that computes has to come, however busy the machine is.
            std::thread::sleep(Duration::from_millis(500));
            let is_idle = CpuWanted::is_idle_since(before.as_ref(), child.id());
            child.kill().unwrap();
            child.wait().unwrap();
            is_idle
        };
        // On a busy machine a shell waits for a CPU until it has begun, and once it is woken.
        assert!((0..3).any(|_| idle("read line")));
        assert!(!idle("while :; do :; done"));
        assert!(!CpuWanted::is_idle_since(None, std::process::id()));
    }
}
