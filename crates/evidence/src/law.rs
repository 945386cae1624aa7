//! The one-line laws by which a chapter predicts what its cure can gain.
//!
//! Most predict from the chapter's own figures before anything is measured. Some need one thing
//! that the problem itself tells, such as a share of its CPU profile: those are [`Inputs`].

mod amdahl;
mod barrier;
mod little;
mod locality;
mod set_up;
mod utilisation;
mod workers;

use serde::{Deserialize, Serialize};

pub use self::{
    amdahl::Amdahl,
    barrier::Barrier,
    little::Little,
    locality::Locality,
    set_up::SetUp,
    utilisation::Utilisation,
    workers::{Workers, Working},
};
use crate::{
    chapter_file::{Setting, WORKER_PARKS},
    claim::{PROBLEM, SOLUTION},
    record::{ProfileKind, Purpose, Record, Round},
};

/// A chapter's law with its parameters: the table `[law.<name>]` of `chapter.toml`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Law {
    /// Little's law: calls in flight bound the throughput.
    Little(Little),
    /// Every write waits for the readers before it: writes bound the throughput.
    Barrier(Barrier),
    /// Amdahl's law: the share of the work that the cure removes bounds the gain.
    Amdahl(Amdahl),
    /// Set-up against exchange: what is paid for every request instead of once.
    SetUp(SetUp),
    /// The utilisation law, and the queue that it fills.
    Utilisation(Utilisation),
    /// Workers, processors and memory.
    Workers(Workers),
    /// The locality mix: how much of the memory is nearby.
    Locality(Locality),
}

/// What a law says about one setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// Most that the problem can answer, in requests a second; `None` where the law speaks of the
    /// gain alone.
    pub problem: Option<f64>,
    /// Most that the solution can answer, in requests a second; `None` as above.
    pub solution: Option<f64>,
    /// How many times as many the solution answers.
    pub ratio: f64,
    /// The prediction in one sentence, figures included.
    pub sentence: String,
}

/// What a law reads off the problem's own run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Inputs {
    /// Share (0 to 1) of the problem's processor time that is spent in the law's frames.
    pub frames_share: Option<f64>,
    /// Processor time a request of problem and solution in the law's own setting, in seconds.
    pub cpu_per_request: Option<(f64, f64)>,
    /// Processors that worked, and what a request cost on them, in the effect's rounds.
    pub working: Option<Working>,
    /// Memory regions of the machine.
    pub memory_regions: u32,
}

impl Inputs {
    /// What a record's profiles tell.
    pub fn of(record: &Record) -> Self {
        let problem = record
            .profiles
            .iter()
            .find(|profile| profile.variant == PROBLEM && profile.kind == ProfileKind::Cpu);
        let both = |of: &dyn Fn(&str) -> Option<f64>| of(PROBLEM).zip(of(SOLUTION));
        let cpu = |purpose| both(&|variant| cpu_per_request(record, purpose, variant));
        let processors = both(&|variant| most_processors(record, variant));
        Self {
            frames_share: problem.and_then(|profile| profile.frames_share),
            cpu_per_request: cpu(Purpose::Law),
            working: processors
                .zip(cpu(Purpose::Effect))
                .map(|(processors, cpu_per_request)| Working {
                    processors,
                    cpu_per_request,
                }),
            memory_regions: record.environment.memory_regions,
        }
    }
}

/// Most processors that worked in any of a variant's rounds; `None` where they were not counted.
fn most_processors(record: &Record, variant: &str) -> Option<f64> {
    let counted: Option<Vec<f64>> = record
        .rounds_for(Purpose::Effect)
        .filter(|round| round.variant == variant)
        .map(|round| round.readings.get(workers::PROCESSORS).copied())
        .collect();
    let most = counted?.into_iter().reduce(f64::max)?;
    (most > 0.0).then_some(most)
}

/// The server's processor time for each answer in seconds, over all rounds of one purpose.
pub(crate) fn cpu_per_request(record: &Record, purpose: Purpose, variant: &str) -> Option<f64> {
    per_request(record, purpose, variant, |round| round.server_cpu_s)
        .filter(|seconds| *seconds > 0.0)
}

/// How often a thread of the service went to sleep for each answer, over all rounds of one purpose.
pub(crate) fn sleeps_per_request(record: &Record, purpose: Purpose, variant: &str) -> Option<f64> {
    per_request(record, purpose, variant, |round| {
        round.readings.get(WORKER_PARKS).copied()
    })
}

/// The sum of what `of` says of each round, for each answer that the server gave meanwhile.
fn per_request(
    record: &Record,
    purpose: Purpose,
    variant: &str,
    of: impl Fn(&Round) -> Option<f64>,
) -> Option<f64> {
    let rounds = || {
        record
            .rounds_for(purpose)
            .filter(|round| round.variant == variant)
    };
    let sum: Option<f64> = rounds().map(of).sum();
    // Older records know only what was answered after the warm-up.
    let answers: u64 = rounds()
        .map(|round| round.server_answers.unwrap_or(round.outcome.completed))
        .sum();
    sum.filter(|_| answers > 0).map(|sum| sum / answers as f64)
}

impl Law {
    /// The name that reports print, such as `Little's law`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Little(_) => "Little's law",
            Self::Barrier(_) => "The barrier of a fair lock",
            Self::Amdahl(_) => "Amdahl's law",
            Self::SetUp(_) => "Set-up against exchange",
            Self::Utilisation(_) => "The utilisation law",
            Self::Workers(_) => "Workers, processors and memory",
            Self::Locality(_) => "The locality mix",
        }
    }

    /// What the law predicts in `setting`; `None` while an input that it needs is unknown.
    pub fn predicted(&self, setting: &Setting, inputs: Inputs) -> Option<Prediction> {
        match self {
            Self::Little(law) => Some(law.predicted(setting.users, setting.think())),
            Self::Barrier(law) => {
                Some(law.predicted(setting.users, setting.think(), setting.write_share))
            }
            Self::Amdahl(law) => inputs.frames_share.map(|share| law.predicted(share)),
            Self::SetUp(_) => inputs
                .cpu_per_request
                .map(|(problem, solution)| SetUp::predicted(problem, solution)),
            Self::Utilisation(law) => law.predicted(setting.users, inputs.cpu_per_request),
            Self::Workers(_) => inputs.working.map(Workers::predicted),
            Self::Locality(law) => Some(law.predicted(inputs.memory_regions)),
        }
    }

    /// The time in ms that no honest answer can undercut, where the law knows one.
    pub fn shortest_answer_ms(&self) -> Option<f64> {
        match self {
            Self::Little(law) => Some(law.call_ms),
            Self::Barrier(law) => Some(law.hold_ms),
            Self::Amdahl(_)
            | Self::SetUp(_)
            | Self::Utilisation(_)
            | Self::Workers(_)
            | Self::Locality(_) => None,
        }
    }

    /// How far (as a share) measurement and prediction may lie apart, where the chapter says so. A
    /// lower bound may be exceeded by more.
    pub fn within(&self) -> Option<f64> {
        match self {
            Self::Amdahl(law) => law.within,
            Self::Workers(law) => law.within,
            _ => None,
        }
    }

    /// Whether more may be gained than the law says, but not less.
    pub fn is_lower_bound(&self) -> bool {
        matches!(self, Self::Amdahl(_))
    }

    /// The frames of a CPU profile whose share the law needs.
    pub fn frames(&self) -> &[String] {
        match self {
            Self::Amdahl(law) => &law.frames,
            _ => &[],
        }
    }

    /// The counters on `/metrics` that the law needs.
    pub fn metrics(&self) -> &'static [&'static str] {
        match self {
            Self::Workers(_) => &[workers::PROCESSORS, workers::WORKERS],
            _ => &[],
        }
    }

    /// Whether there are machines on which the problem has no fault.
    pub(crate) fn depends_on_the_machine(&self) -> bool {
        matches!(self, Self::Workers(_))
    }

    /// Why there is nothing to gain on the machine that was measured, where the law can tell.
    pub(crate) fn nothing_to_gain(&self, inputs: Inputs) -> Option<String> {
        let (Self::Workers(_), Some(working)) = (self, inputs.working) else {
            return None;
        };
        working.is_equal().then(|| {
            format!(
                "this machine cannot show it: the problem sees as many processors as the solution \
                 here ({}).",
                crate::figures::count(working.processors.0)
            )
        })
    }

    /// The setting of the rounds that the law predicts from, where it needs some.
    pub fn setting(&self) -> Option<&str> {
        match self {
            Self::SetUp(law) => Some(&law.setting),
            Self::Utilisation(law) => law.setting.as_deref(),
            _ => None,
        }
    }
}
