//! The one-line laws by which a chapter predicts what its fix can gain: their parameters, as
//! `chapter.toml` has them.

use serde::{Deserialize, Serialize};

use crate::measurement::checked;

/// The counter of CPUs that did any of the work.
pub const CPUS: &str = "scan_cpus";
/// The counter of threads that did it.
pub const WORKERS: &str = "scan_workers";

/// A chapter's law with its parameters: the table `[law.<name>]` of `chapter.toml`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Law {
    /// Little's law, L = λW (J. D. C. Little, "A proof for the queuing formula L = λW", Operations Research
    /// 9(3), 1961), solved for the throughput λ.
    ///
    /// With at most `c` calls of length `W` in flight, λ ≤ c/W. With `N` users who think for `Z`, λ ≤
    /// N/(Z + W) (the response time law; P. J. Denning and J. P. Buzen, "The operational analysis of queueing
    /// network models", ACM Computing Surveys 10(3), 1978). The smaller of the two holds.
    Little {
        /// Length of one call, in milliseconds.
        #[serde(deserialize_with = "checked::positive")]
        call_ms: f64,
        /// Calls that the problem lets be in flight at once.
        #[serde(deserialize_with = "checked::some")]
        problem_in_flight: u32,
        /// The counter on `/metrics` that tells how long one takes in the problem's own rounds, in
        /// seconds, where more belongs to it than the wait of `call_ms`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        measured_by: Option<String>,
    },
    /// The barrier of a fair readers-writer lock.
    ///
    /// A fair lock serves in the order of arrival: a waiting writer stops the readers behind it. So the
    /// queue falls into generations of readers with a write after each. Readers of one generation share the
    /// lock for the time `T` that one of them holds it; the next generation begins after that. With a share
    /// `w` of writes a generation and its write have 1/w requests on average, and λ ≤ 1/(wT).
    ///
    /// This bound is for writes that lie evenly, as the embedded generator sends them. Where they fall at
    /// random, a share `w` follows another write directly and shares its barrier, so that 1/(1 - w) times
    /// as many pass. Without a held lock `N` users who think for `Z` get λ ≤ N/(Z + (1 - w)T), because a
    /// write makes no call (the response time law, as for [`Law::Little`]).
    Barrier {
        /// Time for which a reader of the problem holds its guard, in milliseconds.
        #[serde(deserialize_with = "checked::positive")]
        hold_ms: f64,
    },
    /// Amdahl's law (G. M. Amdahl, "Validity of the single CPU approach to achieving large scale computing
    /// capabilities", AFIPS Spring Joint Computer Conference, 1967): work of which a share `p` vanishes
    /// becomes 1/(1 - p) times as fast.
    ///
    /// The share is extrapolated from a probe: a variant that does the part `left` of the work and nothing
    /// of the rest. If it answers `g` times as many requests as the problem, a request takes 1/g of the
    /// time, and leaving out 1 - `left` of the work has saved (1 - `left`)p. So p = (1 - 1/g)/(1 - `left`).
    /// Nothing of the fix's own rounds goes into it.
    ///
    /// A share that is read off a CPU profile says less than that. Checks and register saves that the work
    /// needs are inlined around it, and on a CPU that executes out of order the rest waits for results of
    /// the work, or is sampled in its stead: all of that counts as rest, and goes as well.
    Amdahl {
        /// Work that the fix removes, in a few words for a sentence: `cloning, allocating and freeing`.
        removes: String,
        /// The variant that does a part of it.
        probe: String,
        /// The part (above 0, below 1) that it does: 0.25 for a quarter.
        #[serde(deserialize_with = "checked::part")]
        left: f64,
        /// The scenario in which problem and probe are compared: a key of `[scenarios]`.
        scenario: String,
        /// Parts of the names of frames: the share of a CPU profile's samples that have one on their stack is
        /// told beside the prediction.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        frames: Vec<String>,
    },
    /// The utilisation law, U = XS (P. J. Denning and J. P. Buzen, "The operational analysis of queueing
    /// network models", ACM Computing Surveys 10(3), 1978): `m` CPUs give at most X = m/S requests per
    /// second that take `S` of CPU time each, wherever the work is done. So moving the work gains no
    /// throughput.
    ///
    /// What it gains is bystanders' wait. With `N` users who ask without a pause there are up to `N` pieces
    /// of work in a queue. Where one thread does the work and everything else in the order of arrival,
    /// another request waits for all of them, up to NS. Where the work has threads of its own, it waits for
    /// the scheduler at most, which is not longer than the piece that runs, S. The prediction is the ratio
    /// of the two, N.
    Utilisation {
        /// CPU time of one piece of work, in milliseconds.
        #[serde(deserialize_with = "checked::positive")]
        work_ms: f64,
    },
    /// Own time and wait: a request takes R = S + W, its own time `S` and its wait `W` in queues (E. D.
    /// Lazowska and others, "Quantitative System Performance", 1984, chapter 1). A fix that takes the queue
    /// away and leaves the request as it is makes it R/S times as short.
    ///
    /// Both are the 99th percentile of the problem's bystanders: `R` beside the load of the prediction's
    /// scenario, `S` in a scenario in which next to nobody else is there.
    Wait {
        /// The scenario in which a bystander is alone: a key of `[scenarios]`.
        scenario: String,
    },
    /// The utilisation law for work that fills every CPU it gets: `m` busy CPUs answer X = m/S requests per
    /// second that take `S` of CPU time each. A service whose workers reach more of the machine's CPUs
    /// answers as many times more, for as long as a request costs no more beside others of its kind:
    /// threads of one core, and CPUs that share a memory, may make it.
    ///
    /// What it costs there is found out with the problem: as many of it side by side as there are CPUs,
    /// each on a CPU of its own, answer what the fix can be expected to.
    Workers {
        /// The scenario in which the problem runs side by side: a key of `[scenarios]`.
        scenario: String,
    },
    /// Of memory that lies in one of `n` regions, a CPU that is anywhere finds 1/n nearby and reaches (n -
    /// 1)/n across, where an access takes `across` times as long. So the mean access takes (1 + (n - 1)
    /// `across`)/n times as long as one nearby. If all accesses are made nearby, the share `memory_bound`
    /// of the time shrinks by that factor, and the rest stays: Amdahl's law.
    ///
    /// With one region both mixes are the same, and the law predicts no gain.
    Locality {
        /// Share (0 to 1) of the time in which a CPU waits for memory, all of it nearby or across.
        #[serde(deserialize_with = "checked::positive")]
        memory_bound: f64,
        /// Factor by which an access across takes longer.
        #[serde(deserialize_with = "checked::positive")]
        across: f64,
    },
}

impl Law {
    /// The name that reports print, such as `Little's law`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Little { .. } => "Little's law",
            Self::Barrier { .. } => "The barrier of a fair lock",
            Self::Amdahl { .. } => "Amdahl's law",
            Self::Utilisation { .. } => "The utilisation law",
            Self::Wait { .. } => "Own time and wait",
            Self::Workers { .. } => "Workers, CPUs and memory",
            Self::Locality { .. } => "The locality mix",
        }
    }

    /// The time in ms that no honest answer can undercut, where the law knows one.
    pub fn shortest_answer_ms(&self) -> Option<f64> {
        match self {
            Self::Little { call_ms: ms, .. } | Self::Barrier { hold_ms: ms } => Some(*ms),
            _ => None,
        }
    }

    /// The variant that runs beside the problem in the law's own rounds; `None` for the fix.
    pub fn probe(&self) -> Option<&str> {
        match self {
            Self::Amdahl { probe, .. } => Some(probe),
            _ => None,
        }
    }

    /// The frames of a CPU profile whose share is told beside the law's.
    pub fn frames(&self) -> &[String] {
        match self {
            Self::Amdahl { frames, .. } => frames,
            _ => &[],
        }
    }

    /// The counters on `/metrics` that the law needs.
    pub fn metrics(&self) -> Vec<&str> {
        match self {
            Self::Workers { .. } => vec![CPUS, WORKERS],
            Self::Little { measured_by, .. } => measured_by.iter().map(String::as_str).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns whether there are machines on which the problem has no fault.
    pub fn depends_on_the_machine(&self) -> bool {
        matches!(self, Self::Workers { .. })
    }

    /// The scenario of the rounds that the law predicts from, where it needs some.
    pub fn scenario(&self) -> Option<&String> {
        match self {
            Self::Amdahl { scenario, .. }
            | Self::Wait { scenario }
            | Self::Workers { scenario } => Some(scenario),
            _ => None,
        }
    }
}
