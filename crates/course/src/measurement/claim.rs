//! Claims of a chapter. Each claim is about one quantity in one scenario: of the problem, of the fix, or
//! their ratio. It compares the quantity with a bound that is given or predicted.

mod bound;
mod claims;
mod quantity;

use serde::{Deserialize, Serialize};
use statistics::metric::Unit;

pub use self::{
    bound::{Bound, Direction, Of},
    claims::Claims,
    quantity::{LoadMetric, Quantity, WORK_CPU},
};

/// The variant with the fault.
pub const PROBLEM: &str = "problem";
/// The variant that the learner edits.
pub const EXERCISE: &str = "exercise";
/// The variant without the fault.
pub const SOLUTION: &str = "solution";

/// Role of a claim, which decides what follows if it does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The count that changes with the fault, whatever else the machine does.
    RootCause,
    /// The gain.
    Effect,
    /// The gain that the chapter's law gives for the effect in the claim's scenario.
    Prediction,
    /// A cost that a fix may not cause.
    Guardrail,
}

/// The only judge of a claim that proof and check do not both judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JudgedBy {
    /// A proof alone.
    Prove,
    /// A check of the exercise alone. Such claims catch edits that nobody with knowledge of the chapter would make.
    Check,
}

/// One claim: an element of `[[claims]]` in `chapter.toml`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Its role.
    pub role: Role,
    /// Name of the quantity, as reports print it; a metric of the generator's has a name of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The quantity: a metric of the generator's, or the name of a counter on `/metrics`. [`Claims`] gives a
    /// prediction the effect's unless it names one.
    #[serde(default, skip_serializing_if = "Quantity::is_unsaid")]
    pub quantity: Quantity,
    /// The scenario: a key of `[scenarios]`. The first effect must name one; [`Claims`] gives it to every
    /// claim that names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// Bound on the problem.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Bound>,
    /// Bound on the solution, and on any other fix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub solution: Option<Bound>,
    /// Bound on their ratio. Larger is better, whatever the quantity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Bound>,
    /// Largest distance, as a share, between the effect and the prediction. Without it, the prediction is
    /// reported but not judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<f64>,
    /// Unit of a counter.
    #[serde(default, skip_serializing_if = "Unit::is_count")]
    pub unit: Unit,
    /// Cargo features of the build that counts, where counting would slow the server down. Such a
    /// count has rounds of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub features: Vec<String>,
    /// Its only judge; `None` if both a proof and a check judge it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<JudgedBy>,
    /// `true` if the claim is left out on systems that do not report the quantity.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub where_reported: bool,
}

impl Claim {
    /// Returns the scenario that it is judged in; [`Claims`] fills it in.
    pub fn scenario(&self) -> &str {
        self.scenario.as_deref().unwrap_or_default()
    }

    /// Returns the name of its quantity, as reports print it.
    pub fn label(&self) -> &str {
        match &self.name {
            Some(name) => name,
            None => self.quantity.label(),
        }
    }

    /// Returns whether a proof judges it.
    pub fn is_proved(&self) -> bool {
        self.only != Some(JudgedBy::Check)
    }

    /// Returns whether a check of the exercise judges it.
    pub fn is_checked(&self) -> bool {
        self.only != Some(JudgedBy::Prove)
    }
}
