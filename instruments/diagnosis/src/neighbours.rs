//! CPU time that other programs use on the CPUs of a process. Only Linux tells.

use std::fs;
use std::time::Instant;

use crate::process::Process;
use crate::thresholds::CPU_LOST;

/// Unit of CPU times in `/proc`, per second: `USER_HZ`, which is 100 on all systems that Rust has.
const TICKS_A_SECOND: f64 = 100.0;

/// Watches how much CPU time other programs use.
#[derive(Debug)]
pub struct Neighbours {
    process: Process,
    cpus: Vec<usize>,
    began: Instant,
    before: f64,
    /// CPU time of the process, and time for which its threads waited for a CPU, at the beginning.
    own_before: Own,
}

/// Times of a process, in seconds.
#[derive(Clone, Copy, Debug, Default)]
struct Own {
    used: f64,
    waited: f64,
}

impl Neighbours {
    /// Begins to watch; `None` if the system does not tell.
    pub fn begin(process: Process) -> Option<Self> {
        let status = process.text("status").ok()?;
        let allowed = status
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        let cpus = cpus_in(allowed.trim())?;
        Some(Self {
            process,
            before: used_by_others(process, &cpus)?,
            own_before: Own::of(process)?,
            cpus,
            began: Instant::now(),
        })
    }

    /// Returns the number of CPUs that others kept busy since the beginning, averaged over time, out of those that the
    /// process may use.
    pub fn cpus_used(&self) -> Option<f64> {
        let used = used_by_others(self.process, &self.cpus)? - self.before;
        Some((used / self.began.elapsed().as_secs_f64()).max(0.0))
    }

    /// Returns how much of the CPU time that the process wanted since the beginning went to others, from 0 to 1: the smaller of
    /// the time that its threads waited for a CPU, and the time that others ran.
    pub fn cpu_lost(&self) -> Option<f64> {
        let others = (used_by_others(self.process, &self.cpus)? - self.before).max(0.0);
        let own = Own::of(self.process)?;
        let used = own.used - self.own_before.used;
        let lost = others.min(own.waited - self.own_before.waited);
        Some(if lost > 0.0 {
            lost / (used + lost)
        } else {
            0.0
        })
    }
}

/// Returns a sentence on CPU time that other programs had, if they had much of what the process wanted.
pub fn lost_in_words(lost: f64) -> Option<String> {
    (lost >= CPU_LOST).then(|| {
        format!(
            "Other programs had {:.0} % of the CPU time it wanted, so times may be longer.",
            lost * 100.0
        )
    })
}

impl Own {
    fn of(process: Process) -> Option<Self> {
        let used = own_ticks(&process.text("stat").ok()?)? as f64 / TICKS_A_SECOND;
        let mut waited = 0;
        for thread in fs::read_dir(process.path("task")).ok()?.flatten() {
            // A thread may have ended.
            let times = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
            let nanoseconds = times.split_ascii_whitespace().nth(1);
            waited += nanoseconds.map_or(0, |time| time.parse::<u64>().unwrap_or_default());
        }
        Some(Self {
            used,
            waited: waited as f64 / 1e9,
        })
    }
}

/// Returns the CPU seconds of others on these CPUs since boot, less a constant.
fn used_by_others(process: Process, cpus: &[usize]) -> Option<f64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let mut ticks = 0;
    for cpu in cpus {
        ticks += busy_ticks(&stat, *cpu)?;
    }
    let own = own_ticks(&process.text("stat").ok()?)?;
    Some((ticks as f64 - own as f64) / TICKS_A_SECOND)
}

/// Returns the ticks that a CPU spent on programs, or that the hypervisor took: user, nice, system and stolen (proc(5)).
/// Interrupts are left out, since they serve the process.
fn busy_ticks(stat: &str, cpu: usize) -> Option<u64> {
    let name = format!("cpu{cpu} ");
    let times = stat.lines().find_map(|line| line.strip_prefix(&name))?;
    let mut ticks = Vec::new();
    for time in times.split_ascii_whitespace() {
        ticks.push(time.parse::<u64>().ok()?);
    }
    match ticks[..] {
        [user, nice, system, _, _, _, _, stolen, ..] => Some(user + nice + system + stolen),
        _ => None,
    }
}

/// Returns the ticks of a process in user and kernel mode: the 14th and 15th field of its `stat`. The second one is its
/// name in parentheses, which may hold anything.
fn own_ticks(stat: &str) -> Option<u64> {
    let (_, after) = stat.rsplit_once(") ")?;
    let mut fields = after.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

/// Reads a list of CPUs: `0-3,8`.
fn cpus_in(list: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for part in list.split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        cpus.extend(from.parse().ok()?..=to.parse::<usize>().ok()?);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_times_are_read_as_the_kernel_writes_them() {
        assert_eq!(cpus_in("0-2,8"), Some(vec![0, 1, 2, 8]));
        assert_eq!(cpus_in(""), None);
        let stat = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu1 7 7 7 7 7 7 7 7 0 0\ncpu11 1 2 4 100 100 100 100 8 0 0\n";
        assert_eq!(busy_ticks(stat, 11), Some(15));
        assert_eq!(busy_ticks(stat, 2), None);
        let own = "7 (a) b (c) S 3 6 7 0 -1 4194560 1 2 3 4 50 20 5 1 20 0 3 0 100";
        assert_eq!(own_ticks(own), Some(70));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_busy_program_beside_this_one_is_a_neighbour() {
        let mut program = std::process::Command::new("sh");
        let mut busy = program.args(["-c", "while :; do :; done"]).spawn().unwrap();
        let is_seen = || {
            let watched = Neighbours::begin(Process::this()).unwrap();
            std::thread::sleep(std::time::Duration::from_secs(1));
            let (used, lost) = (watched.cpus_used().unwrap(), watched.cpu_lost().unwrap());
            // All of it, if this process got no CPU at all.
            assert!((0.0..=1.0).contains(&lost), "{lost}");
            used > 0.3
        };
        // The program may take a moment to begin.
        let is_neighbour = (0..3).any(|_| is_seen());
        busy.kill().unwrap();
        busy.wait().unwrap();
        assert!(is_neighbour);
    }

    #[test]
    fn little_that_others_had_is_not_told() {
        assert!(lost_in_words(CPU_LOST * 0.99).is_none());
        assert!(lost_in_words(CPU_LOST).is_some_and(|says| says.contains("20 %")));
    }
}
