//! Findings: the figures of each claim, and whether it holds. A proof and a check of the exercise judge
//! claims by the same function; they differ in the number of rounds.

use statistics::{FIRST_LOOK, Mean};

use crate::measurement::{
    claim::{Bound, Claim, Direction, LoadMetric, Of, PROBLEM, Quantity, Role},
    record::{Record, Round},
};

use crate::analysis::measured::{Measured, gains};
use crate::analysis::prediction::{self, Inputs, Prediction};

/// Smallest share of a required count of users for which a busy machine may be to blame. Below it, no machine
/// is: it does not turn a thousand calls into one.
const SOME: f64 = 0.2;

/// One claim with its figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The claim.
    pub claim: Claim,
    /// Simultaneous users in the measured scenario; some bounds are shares of them.
    pub users: u32,
    /// The problem's figure: the reading nearest to breaking its bound, or the median of its rounds. For a
    /// prediction, the predicted figure. `None` if a round lacks it.
    pub problem: Option<f64>,
    /// The fix's figure, formed like the problem's.
    pub fix: Option<f64>,
    /// Ratio of fix to problem, larger being better: the mean over all rounds. For a prediction, the
    /// predicted ratio.
    pub ratio: Option<f64>,
    /// 95 % interval of the measured ratio, which decides whether the claim keeps to its bound. With fewer
    /// than three pairs it is their span, or `None` for a prediction. The interval of a measured prediction
    /// includes the scatter of the law's own rounds.
    pub interval: Option<(f64, f64)>,
    /// Number of pairs or triplets behind the ratio.
    pub rounds: usize,
    /// Noise floor: 0.05 is 5 %. `None` if no equal servers were measured.
    pub noise_floor: Option<f64>,
    /// Measured ratio in the scenario of a prediction.
    pub measured: Option<f64>,
    /// `true` if the measured figures keep to the bound; `None` for a prediction that is only reported.
    pub holds: Option<bool>,
}

impl Finding {
    /// Judges every claim of a proof, in the chapter's order.
    pub fn all(record: &Record) -> Vec<Self> {
        let inputs = Inputs::of(record);
        let mut findings = Vec::new();
        for claim in record.chapter.claims.iter() {
            if !claim.is_proved() {
                continue;
            }
            let rounds = record.rounds_of(claim);
            let compared = record.compared(&rounds);
            let measured = Measured {
                rounds: &rounds,
                compared: &compared,
                variant: &record.variant,
                users: record.chapter.users(claim.scenario()),
                looks: record.looks_at(claim.scenario()),
            };
            findings.push(if claim.role == Role::Prediction {
                let predicted = prediction::of_record(record, claim.scenario(), inputs);
                let apart = prediction::apart(record, claim, &measured, predicted.as_ref());
                Self::of_prediction(claim, &measured, predicted.as_ref(), apart)
            } else {
                Self::of(claim, &measured)
            });
        }
        findings
    }

    /// Judges a claim about measured figures.
    pub fn of(claim: &Claim, measured: &Measured<'_>) -> Self {
        let mut finding = if claim.ratio.is_some() {
            Self::of_ratio(claim, measured)
        } else {
            Self::of_readings(claim, measured)
        };
        let left_out = claim.where_reported && measured.is_silent_of(claim);
        finding.holds = Some(left_out || finding.keeps_its_bounds());
        finding
    }

    fn empty(claim: &Claim, measured: &Measured<'_>) -> Self {
        Self {
            claim: claim.clone(),
            users: measured.users,
            problem: None,
            fix: None,
            ratio: None,
            interval: None,
            rounds: measured.compared.len(),
            noise_floor: None,
            measured: None,
            holds: None,
        }
    }

    fn of_ratio(claim: &Claim, measured: &Measured<'_>) -> Self {
        let mut finding = Self {
            problem: median_of(&claim.quantity, measured.rounds, PROBLEM),
            fix: median_of(&claim.quantity, measured.rounds, measured.variant),
            ..Self::empty(claim, measured)
        };
        if let Some(gains) = gains(claim, measured.compared) {
            finding.ratio = gains.ratio();
            finding.interval = gains.interval_or_span(measured.looks);
            finding.noise_floor = gains.noise_floor();
        }
        finding
    }

    fn of_readings(claim: &Claim, measured: &Measured<'_>) -> Self {
        let worst = |variant: &str, bound: Option<Bound>| {
            let rounds = measured.rounds.iter();
            let of_variant = rounds.filter(|round| round.variant == variant);
            // A missing reading says as little as NaN.
            bound?.worst(of_variant.map(|round| round.value(&claim.quantity).unwrap_or(f64::NAN)))
        };
        // For a side without a bound, show the reading that comes nearest to breaking the other side's bound.
        Self {
            problem: worst(PROBLEM, claim.problem.or(claim.solution)),
            fix: worst(measured.variant, claim.solution.or(claim.problem)),
            ..Self::empty(claim, measured)
        }
    }

    fn of_prediction(
        claim: &Claim,
        measured: &Measured<'_>,
        predicted: Option<&Prediction>,
        apart: Option<Mean>,
    ) -> Self {
        let mut finding = Self::empty(claim, measured);
        if let Some(gains) = gains(claim, measured.compared) {
            finding.measured = gains.ratio();
        }
        if let Some(predicted) = predicted {
            (finding.problem, finding.fix) = (predicted.problem, predicted.solution);
            finding.ratio = Some(predicted.ratio);
            if let Some(apart) = apart
                && let Some((low, high)) = apart.interval(measured.looks)
            {
                finding.interval = Some((low * predicted.ratio, high * predicted.ratio));
            }
        }
        // All of the interval must lie in the band. Noise widens the interval, so it never makes a prediction
        // hold.
        finding.holds = finding.band().map(|(from, to)| match finding.interval {
            Some((low, high)) => from <= low && high <= to,
            None => false,
        });
        finding
    }

    /// Returns the ratios between which the effect must lie; `None` unless this is a prediction that is
    /// judged. They are NaN if nothing is predicted.
    pub(crate) fn band(&self) -> Option<(f64, f64)> {
        let within = self.claim.within?;
        let ratio = self.ratio.unwrap_or(f64::NAN);
        Some((ratio * (1.0 - within), ratio * (1.0 + within)))
    }

    /// Returns the distance of the measured ratio from the predicted one, as a share of the predicted one.
    pub fn off(&self) -> Option<f64> {
        Some(self.measured? / self.ratio? - 1.0)
    }

    /// Returns the figures that must keep to the bound on the ratio: the interval, or the ratio of a single pair.
    pub(crate) fn decisive(&self) -> Option<(f64, f64)> {
        self.interval.or(self.ratio.map(|ratio| (ratio, ratio)))
    }

    /// Returns the name of the interval, to print before it.
    pub fn spread(&self) -> &'static str {
        if self.rounds < FIRST_LOOK as usize {
            "single rounds from"
        } else {
            "95 % interval"
        }
    }

    /// Returns whether a figure that the claim is judged by is missing.
    pub fn is_incomplete(&self) -> bool {
        for (bound, figure) in [
            (self.claim.problem, self.problem),
            (self.claim.solution, self.fix),
            (self.claim.ratio, self.ratio),
        ] {
            if bound.is_some() && figure.is_none() {
                return true;
            }
        }
        false
    }

    /// Returns whether the claim does not hold because a figure is missing.
    pub(crate) fn is_unmeasured(&self) -> bool {
        self.is_incomplete() && self.holds == Some(false)
    }

    /// Returns the first side that breaks its bound: the side's name, its figure, and the bound.
    pub fn broken(&self) -> Option<(&'static str, f64, Bound)> {
        for (side, bound, figure) in [
            ("problem", self.claim.problem, self.problem),
            ("fix", self.claim.solution, self.fix),
        ] {
            if let (Some(bound), Some(figure)) = (bound, figure)
                && !bound.holds(figure, self.users)
            {
                return Some((side, figure, bound));
            }
        }
        None
    }

    /// Returns whether the fix's count falls short of a share of the users by so little that a busy machine
    /// may be the cause. A server without CPU time has not let all of them in yet.
    pub(crate) fn lacks_some_users(&self) -> bool {
        let Some((side, figure, bound)) = self.broken() else {
            return false;
        };
        let is_of_users = bound.of == Of::Users && bound.direction == Direction::AtLeast;
        side == "fix" && is_of_users && figure >= SOME * bound.limit(self.users)
    }

    /// Returns whether the fix's count misses its bound by so little that a busy machine may be the cause: users who
    /// could not come at once, or answers that came too late to be counted.
    pub(crate) fn may_lack_time(&self) -> bool {
        let exceeds_a_little = match self.broken() {
            Some(("fix", figure, bound)) if self.claim.quantity.is_per_answer() => {
                bound.direction == Direction::AtMost && SOME * figure <= bound.limit(self.users)
            }
            _ => false,
        };
        exceeds_a_little || self.lacks_some_users()
    }

    /// Returns whether the fix's figure is too small. A server that was not asked enough has a small count, too.
    pub(crate) fn lacks(&self) -> bool {
        let broken = self.broken();
        broken.is_some_and(|(_, _, bound)| bound.direction == Direction::AtLeast)
    }

    /// Formats the bounds of the claim as they are written, for JSON; `None` for a prediction that is only
    /// reported.
    pub fn bound(&self) -> Option<String> {
        let mut parts = Vec::new();
        for (figure, bound) in [
            ("problem", self.claim.problem),
            ("fix", self.claim.solution),
            ("ratio", self.claim.ratio),
        ] {
            parts.extend(bound.map(|bound| format!("{figure} {bound}")));
        }
        parts.extend(self.claim.within.map(|within| format!("within {within}")));
        if parts.is_empty() {
            return None;
        }
        Some(parts.join(", "))
    }

    fn keeps_its_bounds(&self) -> bool {
        if self.is_incomplete() || self.broken().is_some() {
            return false;
        }
        let Some(bound) = self.claim.ratio else {
            return true;
        };
        let Some((low, high)) = self.decisive() else {
            return false;
        };
        // The whole interval has to keep to it.
        match bound.direction {
            Direction::AtLeast => bound.holds(low, self.users),
            Direction::AtMost => bound.holds(high, self.users),
        }
    }
}

/// Returns the median of a variant's rounds; `None` if there is no round, or one without a figure.
pub fn median_of(quantity: &Quantity, rounds: &[&Round], variant: &str) -> Option<f64> {
    prediction::median_of(rounds, variant, |round| round.value(quantity))
}

/// Returns whether [`median_of`] may be only a lower bound, because one of the rounds has only a lower bound.
pub fn is_at_least(quantity: &Quantity, rounds: &[&Round], variant: &str) -> bool {
    let mut own = rounds.iter().filter(|round| round.variant == variant);
    own.any(|round| round.is_at_least(quantity))
}

/// Returns [`median_of`] a metric of the generator.
pub fn median_metric(metric: LoadMetric, rounds: &[&Round], variant: &str) -> Option<f64> {
    median_of(&Quantity::Metric(metric), rounds, variant)
}
