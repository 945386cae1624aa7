//! The claims as scripts read them: one object each, with plain numbers.

use crate::analysis::finding::Finding;
use crate::measurement::claim::Role;
use serde::Serialize;

/// One claim with its figures, in `prove --format json` and `check --format json` alike.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClaimSummary {
    /// What it is for.
    pub role: Role,
    /// What is measured, for people.
    pub name: String,
    /// Its key: a metric of the generator's, or a counter on `/metrics`.
    pub quantity: String,
    /// The scenario that it was measured in.
    pub scenario: String,
    /// What the plain numbers count: `1/s`, `ms`, `bytes`, …; empty for a count.
    pub unit: &'static str,
    /// The problem's figure; of a prediction, what is predicted.
    pub problem: Option<f64>,
    /// The fix's figure; of a prediction, what is predicted.
    pub fix: Option<f64>,
    /// Fix to problem, larger being better; of a prediction, what is predicted.
    pub ratio: Option<f64>,
    /// Its 95 % interval, low then high.
    pub interval: Option<(f64, f64)>,
    /// How far from 1 the ratio of equal servers was: 0.05 is 5 %.
    pub noise_floor: Option<f64>,
    /// Of a prediction: the ratio that was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<f64>,
    /// What was claimed, such as `ratio >= 300`; null for a prediction that is only told.
    pub bound: Option<String>,
    /// Whether it holds; null for a prediction that is only told.
    pub holds: Option<bool>,
}

impl From<&Finding> for ClaimSummary {
    fn from(finding: &Finding) -> Self {
        let claim = &finding.claim;
        Self {
            role: claim.role,
            name: claim.label().to_owned(),
            quantity: claim.quantity.key().to_owned(),
            scenario: claim.scenario().to_owned(),
            unit: claim.quantity.unit(claim.unit),
            problem: finding.problem,
            fix: finding.fix,
            ratio: finding.ratio,
            interval: finding.interval,
            noise_floor: finding.noise_floor,
            measured: finding.measured,
            bound: finding.bound(),
            holds: finding.holds,
        }
    }
}
