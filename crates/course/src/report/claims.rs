//! The claims in the form that scripts read: one object each, with plain numbers.

use crate::analysis::finding::Finding;
use crate::measurement::claim::Role;
use serde::Serialize;

/// One claim with its figures, in `prove --format json` and `check --format json` alike.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClaimSummary {
    /// Its role.
    pub role: Role,
    /// Name of the quantity, for people.
    pub name: String,
    /// Its key: a metric of the generator's, or a counter on `/metrics`.
    pub quantity: String,
    /// The scenario that it was measured in.
    pub scenario: String,
    /// Unit of the plain numbers: `1/s`, `ms`, `bytes`, …; empty for a count.
    pub unit: &'static str,
    /// The problem's figure; for a prediction, the predicted one.
    pub problem: Option<f64>,
    /// The fix's figure; for a prediction, the predicted one.
    pub fix: Option<f64>,
    /// Ratio of fix to problem, larger being better; for a prediction, the predicted one.
    pub ratio: Option<f64>,
    /// Its 95 % interval, low then high.
    pub interval: Option<(f64, f64)>,
    /// Distance of the ratio of equal servers from 1: 0.05 is 5 %.
    pub noise_floor: Option<f64>,
    /// Measured ratio, for a prediction only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<f64>,
    /// Bound that was claimed, such as `ratio >= 300`; null for a prediction that is only reported.
    pub bound: Option<String>,
    /// `true` if it holds; null for a prediction that is only reported.
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
