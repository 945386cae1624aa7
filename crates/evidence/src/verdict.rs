//! What a record shows about a claim: proved, not shown, refuted, or invalid.

use serde::{Deserialize, Serialize};

use crate::{claim::Metric, law::Prediction, record::Record};

/// What a run shows about a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum VerdictKind {
    /// The mechanism holds and the whole interval lies above the claim.
    #[serde(rename = "proved")]
    Proved,
    /// The run cannot tell: the interval includes no gain, or straddles the claim.
    #[serde(rename = "not shown")]
    NotShown,
    /// The mechanism contradicts the claim, or the whole interval lies below it.
    #[serde(rename = "refuted")]
    Refuted,
    /// The run says nothing about the claim, whatever its figures.
    #[serde(rename = "invalid")]
    Invalid,
}

impl std::fmt::Display for VerdictKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Proved => "proved",
            Self::NotShown => "not shown",
            Self::Refuted => "refuted",
            Self::Invalid => "invalid",
        })
    }
}

/// A verdict with its reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// What the run shows.
    pub kind: VerdictKind,
    /// Why, in one sentence.
    pub reason: String,
}

/// A mechanism's readings against its limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MechanismFinding {
    /// What was counted.
    pub name: String,
    /// The problem's reading nearest to breaking its limit.
    pub problem: Option<f64>,
    /// The solution's reading nearest to breaking its limit.
    pub solution: Option<f64>,
    /// Whether every reading of the problem kept to its limit.
    pub problem_holds: bool,
    /// Whether every reading of the solution kept to its limit.
    pub solution_holds: bool,
}

/// The measured gain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EffectFinding {
    /// What was compared.
    pub metric: Metric,
    /// The claimed ratio.
    pub claimed: f64,
    /// Each pair's ratio, in the order in which they ran; `None` where a side answered nothing.
    pub pairs: Vec<Option<f64>>,
    /// The median of the pairs' ratios.
    pub ratio: Option<f64>,
    /// Its 95 % interval.
    pub interval: Option<(f64, f64)>,
    /// How far from 1 the ratio of equal servers wandered: 0.05 is 5 %.
    pub noise_floor: Option<f64>,
}

/// How near the solution came to the law.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BoundFinding {
    /// The law's bound, in requests a second.
    pub bound: f64,
    /// Measured, in requests a second.
    pub measured: f64,
    /// `measured / bound`.
    pub share: f64,
    /// The claimed share.
    pub claimed: f64,
    /// What the problem gave in the same setting, in requests a second.
    pub problem: Option<f64>,
}

/// Everything that a record shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    /// What the law predicted in the effect's setting.
    pub prediction: Prediction,
    /// The mechanism.
    pub mechanism: MechanismFinding,
    /// The effect.
    pub effect: EffectFinding,
    /// The nearness to the law's bound, where the chapter claims one.
    pub bound: Option<BoundFinding>,
    /// What follows.
    pub verdict: Verdict,
}

/// Computes the figures of a record and judges them.
pub fn analyse(_record: &Record) -> Analysis {
    todo!("in the next commit")
}
