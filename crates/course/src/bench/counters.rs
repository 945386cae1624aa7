//! Number of CPUs, by each of the functions that programs call, compared with the number that they can use.

use children::quota;

/// Returns each counter's result on the calling thread, by name: `std::thread::available_parallelism`,
/// `num_cpus::get`, the workers of tokio's multi-thread runtime, and the processors of
/// `many_cpus::SystemHardware::current()`.
pub fn counts() -> [(&'static str, usize); 4] {
    let many_cpus = many_cpus::SystemHardware::current().processors().len();
    [
        (
            "std",
            std::thread::available_parallelism().map_or(1, usize::from),
        ),
        ("num_cpus", num_cpus::get()),
        ("tokio", tokio_workers()),
        ("many_cpus", many_cpus),
    ]
}

/// CPUs that the process can really use.
#[derive(Debug, Clone, Copy)]
pub struct Usable {
    /// CPUs that its threads may run on: by affinity, in all processor groups.
    pub cpus: usize,
    /// CPUs' worth of time that a quota allows; `None` without a quota.
    pub quota: Option<f64>,
}

/// Judgement on a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judged {
    /// This number of workers uses everything that there is.
    Right,
    /// Some CPUs would have no worker.
    TooFew,
    /// Some workers would have no CPU, or no time on it.
    TooMany,
}

/// Returns the number of workers of a tokio runtime if the program does not set it.
fn tokio_workers() -> usize {
    tokio::runtime::Builder::new_multi_thread()
        .build()
        .map_or(0, |runtime| runtime.metrics().num_workers())
}

impl Usable {
    /// Reads the limits of this process. Call it before any thread is pinned.
    pub fn here() -> Self {
        Self {
            cpus: cpus(),
            quota: quota::limit(),
        }
    }

    /// Judges a counter that says `count`. A quota of one and a half CPUs is used by one worker in part and
    /// by two in turns, so neither count is wrong.
    pub fn judge(self, count: usize) -> Judged {
        let time = self.quota.unwrap_or(f64::INFINITY).max(1.0);
        let least = time.floor().min(self.cpus as f64);
        let most = time.ceil().min(self.cpus as f64);
        let count = count as f64;
        if count < least {
            Judged::TooFew
        } else if count > most {
            Judged::TooMany
        } else {
            Judged::Right
        }
    }
}

#[cfg(windows)]
fn cpus() -> usize {
    many_cpus::SystemHardware::current().all_processors().len()
}

// many_cpus keeps its first answer and is one of the judged counters, so it is not used here.
#[cfg(not(windows))]
fn cpus() -> usize {
    children::cpus::count() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_right_between_what_a_quota_gives_in_part_and_in_whole() {
        let usable = |cpus, quota| Usable { cpus, quota };
        assert_eq!(usable(2, None).judge(2), Judged::Right);
        assert_eq!(usable(2, None).judge(1), Judged::TooFew);
        assert_eq!(usable(176, None).judge(44), Judged::TooFew);
        assert_eq!(usable(2, Some(1.5)).judge(1), Judged::Right);
        assert_eq!(usable(2, Some(1.5)).judge(2), Judged::Right);
        assert_eq!(usable(2, Some(0.5)).judge(1), Judged::Right);
        assert_eq!(usable(2, Some(0.5)).judge(2), Judged::TooMany);
        assert_eq!(usable(8, Some(2.5)).judge(1), Judged::TooFew);
        assert_eq!(usable(1, Some(1.5)).judge(2), Judged::TooMany);
    }

    #[test]
    fn every_counter_finds_a_cpu() {
        let counts = counts();
        assert!(counts.iter().all(|(_, count)| *count > 0), "{counts:?}");
        assert!(Usable::here().cpus > 0);
    }
}
