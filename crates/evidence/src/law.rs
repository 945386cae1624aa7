//! The one-line laws by which a chapter predicts what its cure can gain.
//!
//! Most predict from the chapter's own figures before anything is measured. Some need one thing
//! that the problem itself tells, such as a share of its CPU profile: those are [`Inputs`].

mod amdahl;
mod barrier;
mod little;

use serde::{Deserialize, Serialize};

pub use self::{amdahl::Amdahl, barrier::Barrier, little::Little};
use crate::{
    chapter_file::Setting,
    claim::PROBLEM,
    record::{ProfileKind, Record},
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
}

impl Inputs {
    /// What a record's profiles tell.
    pub fn of(record: &Record) -> Self {
        let problem = record
            .profiles
            .iter()
            .find(|profile| profile.variant == PROBLEM && profile.kind == ProfileKind::Cpu);
        Self {
            frames_share: problem.and_then(|profile| profile.frames_share),
        }
    }
}

impl Law {
    /// The name that reports print, such as `Little's law`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Little(_) => "Little's law",
            Self::Barrier(_) => "The barrier of a fair lock",
            Self::Amdahl(_) => "Amdahl's law",
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
        }
    }

    /// The time in ms that no honest answer can undercut, where the law knows one.
    pub fn shortest_answer_ms(&self) -> Option<f64> {
        match self {
            Self::Little(law) => Some(law.call_ms),
            Self::Barrier(law) => Some(law.hold_ms),
            Self::Amdahl(_) => None,
        }
    }

    /// How far (as a share) measurement and prediction may lie apart, where the chapter says so.
    pub fn within(&self) -> Option<f64> {
        match self {
            Self::Amdahl(law) => law.within,
            Self::Little(_) | Self::Barrier(_) => None,
        }
    }

    /// The frames of a CPU profile whose share the law needs.
    pub fn frames(&self) -> &[String] {
        match self {
            Self::Amdahl(law) => &law.frames,
            Self::Little(_) | Self::Barrier(_) => &[],
        }
    }
}
