//! CPU time that other programs used while a server was under load.

use std::time::Instant;

use cpu_time::ProcessTime;

use engine::child::processes::{TICKS_A_SECOND, cpu_ticks};

/// The machine's and this process's CPU time at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CpuTime {
    /// Busy and stolen time of all CPUs in seconds, and the number of CPUs.
    machine: Option<(f64, f64)>,
    own: ProcessTime,
    at: Instant,
}

impl CpuTime {
    pub(crate) fn now() -> Self {
        let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        Self {
            machine: busy(&stat),
            own: ProcessTime::now(),
            at: Instant::now(),
        }
    }

    /// Returns the share of all CPUs' time since `self` that neither this process nor the server used;
    /// `server_s` is the server's CPU time. Other programs used it, or the host gave it to other machines.
    /// `None` if the system does not report it.
    pub(crate) fn used_elsewhere(&self, server_s: f64) -> Option<f64> {
        let now = Self::now();
        let ((before, _), (after, cpus)) = (self.machine?, now.machine?);
        let own = now.own.duration_since(self.own).as_secs_f64();
        let all = cpus * now.at.duration_since(self.at).as_secs_f64();
        Some(((after - before - own - server_s) / all).clamp(0.0, 1.0))
    }
}

/// Returns the seconds that CPUs were busy or stolen, and the number of CPUs.
fn busy(stat: &str) -> Option<(f64, f64)> {
    let lines = stat.lines().filter(|line| line.starts_with("cpu"));
    let cpus = lines.count().checked_sub(1)?;
    let [
        user,
        nice,
        system,
        _idle,
        _waiting,
        interrupts,
        soft,
        stolen,
    ] = cpu_ticks(stat, "cpu")?;
    let ticks = user + nice + system + interrupts + soft + stolen;
    Some((ticks as f64 / TICKS_A_SECOND, cpus as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_and_stolen_time_is_told_from_idle_time() {
        let stat = "cpu  100 20 30 9000 500 1 2 47 8 0\ncpu0 1 2 3\ncpu1 1 2 3\nintr 5\n";
        assert_eq!(busy(stat), Some((2.0, 2.0)));
        assert_eq!(busy("cpu 1\ncpu0 1\n"), None);
    }
}
