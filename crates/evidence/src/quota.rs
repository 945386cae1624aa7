//! Time for which a CPU quota held this process's control group back.

/// The throttled time up to a moment.
#[derive(Debug, Clone, Copy)]
pub struct Throttling {
    seconds: f64,
}

impl Throttling {
    /// The control group's throttled time up to now; `None` without a control
    /// group that has a quota, and anywhere but on Linux.
    pub fn now() -> Option<Self> {
        // Version 2 counts in microseconds, version 1 in nanoseconds.
        [
            ("/sys/fs/cgroup/cpu.stat", "throttled_usec ", 1e-6),
            ("/sys/fs/cgroup/cpu/cpu.stat", "throttled_time ", 1e-9),
        ]
        .into_iter()
        .find_map(|(file, key, unit)| {
            let text = std::fs::read_to_string(file).ok()?;
            let count: f64 = text
                .lines()
                .find_map(|line| line.strip_prefix(key))?
                .parse()
                .ok()?;
            Some(Self {
                seconds: count * unit,
            })
        })
    }

    /// Throttled seconds since then.
    pub fn seconds_since(self) -> Option<f64> {
        Self::now().map(|now| (now.seconds - self.seconds).max(0.0))
    }
}
