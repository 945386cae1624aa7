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
        /// Counter on `/metrics` for the length of a call in the problem's own rounds, in seconds. Needed
        /// where a call takes longer than the wait of `call_ms`.
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
    /// This bound is for evenly spaced writes, as the embedded generator sends them. If writes fall at
    /// random, a share `w` of them follows another write directly and shares its barrier. Then 1/(1 - w)
    /// times as many requests pass. Without a held lock, `N` users who think for `Z` get
    /// λ ≤ N/(Z + (1 - w)T), because a write makes no call. That is the response time law, as for
    /// [`Law::Little`].
    Barrier {
        /// Time for which a reader of the problem holds its guard, in milliseconds.
        #[serde(deserialize_with = "checked::positive")]
        hold_ms: f64,
    },
    /// Amdahl's law (G. M. Amdahl, "Validity of the single CPU approach to achieving large scale computing
    /// capabilities", AFIPS Spring Joint Computer Conference, 1967): work of which a share `p` vanishes
    /// becomes 1/(1 - p) times as fast.
    ///
    /// The share is extrapolated from a probe: a variant that does the part `left` of the work and is
    /// otherwise the same. If it answers `g` times as many requests as the problem, a request takes 1/g of
    /// the time. So leaving out 1 - `left` of the work has saved (1 - `left`)p, and
    /// p = (1 - 1/g)/(1 - `left`). The prediction uses nothing from the fix's own rounds.
    ///
    /// A share that is read off a CPU profile is too small. Checks and register saves that the work needs are
    /// inlined around it. A CPU that executes out of order also attributes waits for the work's results to
    /// other code. Both count as the rest, and the fix removes them, too.
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
        /// Parts of the names of frames. Beside the prediction, reports print the share of a CPU profile's
        /// samples that have such a frame on their stack.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        frames: Vec<String>,
    },
    /// The utilisation law, U = XS (P. J. Denning and J. P. Buzen, "The operational analysis of queueing
    /// network models", ACM Computing Surveys 10(3), 1978): `m` CPUs give at most X = m/S requests per
    /// second that take `S` of CPU time each, wherever the work is done. So moving the work gains no
    /// throughput.
    ///
    /// Bystanders wait less, however. With `N` users who ask without a pause there are up to `N` pieces of
    /// work in a queue. If one thread does the work and everything else in the order of arrival, another
    /// request waits for all of them, up to NS. If the work has threads of its own, it waits for the
    /// scheduler at most: no longer than the piece that runs, S. The prediction is the ratio of the two, N.
    Utilisation {
        /// CPU time of one piece of work, in milliseconds.
        #[serde(deserialize_with = "checked::positive")]
        work_ms: f64,
    },
    /// The fluid model of a queue (L. Kleinrock, "Queueing Systems", volume 2, 1976, chapter 2): while requests come at
    /// λ and at most μ = c/S leave, with `c` permits that are each held for `S`, the queue grows by (λ - μ)t. It drains
    /// once λ is below μ. Who finds a queue of `q` waits for q/μ.
    ///
    /// Clients wait for the scenario's `give_up_after_s`. In a queue without a bound, those are answered in time who
    /// find one that is shorter than that allows. If the queue is never longer, everything that leaves is in time. The
    /// prediction is the ratio of the two goodputs over the scenario's phases. λ is the rate at which requests really
    /// came: at random, a twentieth more than was asked can double the excess over the capacity.
    Overload {
        /// Requests that are served at once.
        #[serde(deserialize_with = "checked::some")]
        permits: u32,
        /// Time for which a permit is held, in milliseconds.
        #[serde(deserialize_with = "checked::positive")]
        hold_ms: f64,
        /// Counter on `/metrics` for the length of a hold in the problem's own rounds, in seconds. Timers round up.
        measured_by: String,
    },
    /// Own time and wait: a request takes R = S + W, its own time `S` and its wait `W` in queues (E. D.
    /// Lazowska and others, "Quantitative System Performance", 1984, chapter 1). A fix that takes the queue
    /// away and leaves the request as it is makes it R/S times as short.
    ///
    /// Both are the 99th percentile of the problem's bystanders: `R` beside the load of the prediction's
    /// scenario, `S` in a scenario with almost no other load.
    Wait {
        /// The scenario in which a bystander is alone: a key of `[scenarios]`.
        scenario: String,
    },
    /// The utilisation law for work that fills every CPU it gets: `m` busy CPUs answer X = m/S requests per
    /// second that take `S` of CPU time each. Throughput grows with the number of CPUs that the workers
    /// reach, as long as a request does not cost more beside others of its kind. It may cost more on threads
    /// of one core, and on CPUs that share a memory.
    ///
    /// The problem measures that cost: as many instances as there are CPUs run side by side, each on a CPU of
    /// its own. Together they answer as much as the fix can be expected to answer.
    Workers {
        /// The scenario in which the problem runs side by side: a key of `[scenarios]`.
        scenario: String,
    },
    /// Model of a machine with `n` memory regions. If data lies in one region, a CPU that may be anywhere
    /// makes 1/n of its accesses nearby. The other (n - 1)/n go across and take `across` times as long. So
    /// the mean access takes (1 + (n - 1) `across`)/n times as long as one nearby. If all accesses are made
    /// nearby, the share `memory_bound` of the time shrinks by that factor, and the rest stays: Amdahl's law.
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
    /// Returns the name that reports print, such as `Little's law`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Little { .. } => "Little's law",
            Self::Barrier { .. } => "The barrier of a fair lock",
            Self::Amdahl { .. } => "Amdahl's law",
            Self::Utilisation { .. } => "The utilisation law",
            Self::Overload { .. } => "The fluid model of a queue",
            Self::Wait { .. } => "Own time and wait",
            Self::Workers { .. } => "Workers, CPUs and memory",
            Self::Locality { .. } => "The locality mix",
        }
    }

    /// Returns the shortest time in ms that a correct answer can take, if the law knows one.
    pub fn shortest_answer_ms(&self) -> Option<f64> {
        match self {
            Self::Little { call_ms: ms, .. }
            | Self::Barrier { hold_ms: ms }
            | Self::Overload { hold_ms: ms, .. } => Some(*ms),
            _ => None,
        }
    }

    /// Returns the standard deviation of the problem's requests in a round of this length, as a share of their mean,
    /// where chance decides how many the law lets through.
    ///
    /// A barrier lets all reads through that came before the next write. Their number is geometric, so its deviation is
    /// about as large as its mean, and a round has as many of them as holds fit into it.
    pub fn chance_of_the_problem(&self, seconds: f64) -> f64 {
        match self {
            Self::Barrier { hold_ms } => (hold_ms / 1e3 / seconds).sqrt(),
            _ => 0.0,
        }
    }

    /// Returns the variant that runs beside the problem in the law's own rounds; `None` for the fix.
    pub fn probe(&self) -> Option<&str> {
        match self {
            Self::Amdahl { probe, .. } => Some(probe),
            _ => None,
        }
    }

    /// Returns the frames whose share of a CPU profile reports print beside the prediction.
    pub fn frames(&self) -> &[String] {
        match self {
            Self::Amdahl { frames, .. } => frames,
            _ => &[],
        }
    }

    /// Returns the counters on `/metrics` that the law needs.
    pub fn metrics(&self) -> Vec<&str> {
        match self {
            Self::Workers { .. } => vec![CPUS, WORKERS],
            Self::Little { measured_by, .. } => measured_by.iter().map(String::as_str).collect(),
            Self::Overload { measured_by, .. } => vec![measured_by],
            _ => Vec::new(),
        }
    }

    /// Returns whether the problem has no fault on some machines.
    pub fn depends_on_the_machine(&self) -> bool {
        matches!(self, Self::Workers { .. })
    }

    /// Returns the scenario of the rounds that the law predicts from, if it needs any.
    pub fn scenario(&self) -> Option<&String> {
        match self {
            Self::Amdahl { scenario, .. }
            | Self::Wait { scenario }
            | Self::Workers { scenario } => Some(scenario),
            _ => None,
        }
    }
}
