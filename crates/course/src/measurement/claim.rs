//! Claims of a chapter. Every claim is one thing: a quantity, of the problem, of the fix or as
//! their ratio, in a scenario, compared with a bound that is given or predicted.

mod bound;
mod claims;
mod quantity;

use engine::metric::Unit;
use serde::{Deserialize, Serialize};

pub use self::{
    bound::{Bound, Direction, Of},
    claims::Claims,
    quantity::{Metric, Quantity, WORK_CPU},
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
    /// The count that changes with the fault, whatever the machine does meanwhile.
    RootCause,
    /// The gain.
    Effect,
    /// The gain that the chapter's law gives for the effect in the claim's scenario.
    Prediction,
    /// A cost that a fix may not have.
    Guardrail,
}

/// Judge of a claim that only one of them judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JudgedBy {
    /// A proof alone.
    Prove,
    /// A check of the exercise alone: what nobody would write who knows the chapter.
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
    /// The quantity: a metric of the generator's, or the name of a counter on `/metrics`. A
    /// prediction is about the effect's, unless it says otherwise; [`Claims`] has filled it in.
    #[serde(default, skip_serializing_if = "Quantity::is_unsaid")]
    pub quantity: Quantity,
    /// The scenario: a key of `[scenarios]`. The effect names one; the others are of the effect's
    /// unless they name one.
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
    /// Distance (as a share) that the effect may have from the prediction. Without it the prediction is
    /// told and not judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<f64>,
    /// Unit of a counter.
    #[serde(default, skip_serializing_if = "Unit::is_count")]
    pub unit: Unit,
    /// Cargo features of the build that counts, where counting would slow the server down. Such a
    /// count has rounds of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub features: Vec<String>,
    /// Its judge, where it is not both a proof and a check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<JudgedBy>,
    /// `true` if it is left out where the server's system does not report the quantity.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub where_reported: bool,
}

impl Claim {
    /// The scenario that it is judged in; [`Claims`] has filled it in.
    pub fn scenario(&self) -> &str {
        self.scenario.as_deref().unwrap_or_default()
    }

    /// Name of its quantity, as reports print it.
    pub fn label(&self) -> &str {
        let of_quantity = || self.quantity.label();
        self.name.as_deref().unwrap_or_else(of_quantity)
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
