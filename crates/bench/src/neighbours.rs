//! CPU time that others used while a server was under load.

use cpu_time::ProcessTime;
use std::time::Instant;

/// Ticks a second in `/proc/stat`: `USER_HZ`, which Linux has fixed at 100 (proc(5)).
const TICKS: f64 = 100.0;

/// The machine's and this process's CPU time at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CpuTime {
    /// Busy or stolen, of each CPU's time, in seconds; and how many CPUs there are.
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

    /// The share of all CPUs' time since then that neither this process nor a server used, which took
    /// `server_s` of it: other programs, and what the host gave to other machines. `None` where the
    /// system does not tell.
    pub(crate) fn used_elsewhere(&self, server_s: f64) -> Option<f64> {
        let now = Self::now();
        let ((before, _), (after, cpus)) = (self.machine?, now.machine?);
        let own = now.own.duration_since(self.own).as_secs_f64();
        let all = cpus * now.at.duration_since(self.at).as_secs_f64();
        Some(((after - before - own - server_s) / all).clamp(0.0, 1.0))
    }
}

/// Seconds that CPUs were busy or stolen, and how many there are.
fn busy(stat: &str) -> Option<(f64, f64)> {
    let lines = stat.lines().filter(|line| line.starts_with("cpu"));
    let cpus = lines.count().checked_sub(1)?;
    let mut fields = stat.lines().next()?.split_whitespace().skip(1);
    let mut field = || fields.next()?.parse::<f64>().ok();
    let (user, nice, system) = (field()?, field()?, field()?);
    let (_idle, _waiting) = (field()?, field()?);
    let (interrupts, soft, stolen) = (field()?, field()?, field()?);
    let ticks = user + nice + system + interrupts + soft + stolen;
    Some((ticks / TICKS, cpus as f64))
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
