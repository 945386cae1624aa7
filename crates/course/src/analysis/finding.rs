//! What was measured of a claim, and whether it holds. A proof and a check of the exercise judge
//! the same claims by the same function; they differ in how many rounds they have.

use crate::measurement::{
    claim::{Bound, Claim, Direction, Metric, PROBLEM, Quantity, Role},
    record::{Compared, Record, Round},
};

use crate::analysis::prediction::{self, Inputs, Prediction, in_scenario};
use engine::statistics::{FIRST_LOOK, Gains, Looks};

/// One claim with its figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// What is claimed.
    pub claim: Claim,
    /// Simultaneous users while it was measured, by which some bounds count.
    pub users: u32,
    /// The problem's figure: the reading nearest to breaking its bound, or the median of its rounds.
    /// Of a prediction, what is predicted. `None` where a round lacks it.
    pub problem: Option<f64>,
    /// The fix's figure, as the problem's.
    pub fix: Option<f64>,
    /// Fix to problem, larger being better: the mean of all rounds. Of a prediction, what is
    /// predicted.
    pub ratio: Option<f64>,
    /// The 95 % interval of what was measured, which decides whether it keeps to its bound; the span of
    /// the pairs where they are fewer than three, and of a prediction none.
    pub interval: Option<(f64, f64)>,
    /// Pairs or triplets that the ratio is of.
    pub rounds: usize,
    /// How far from 1 the ratio of equal servers may be: 0.05 is 5 %. Where equal servers were measured.
    pub noise_floor: Option<f64>,
    /// Of a prediction: the ratio that was measured in its scenario.
    pub measured: Option<f64>,
    /// Whether what was measured keeps to the bound; `None` for a prediction that is only told.
    pub holds: Option<bool>,
}

/// What a claim is measured by.
#[derive(Debug, Clone, Copy)]
pub struct Measured<'r> {
    /// The rounds, in the order in which they ran.
    pub rounds: &'r [&'r Round],
    /// Those of them that were measured together; `None` in place of others.
    pub compared: &'r [Option<Compared<'r>>],
    /// The variant that is compared with the problem.
    pub variant: &'r str,
    /// Simultaneous users.
    pub users: u32,
    /// When it was looked whether they decide.
    pub looks: Looks,
}

impl Measured<'_> {
    /// Whether no round of the fix has a reading of the claim's quantity, not even one that is not
    /// a number.
    fn is_silent_of(&self, claim: &Claim) -> bool {
        let mut own = self
            .rounds
            .iter()
            .filter(|round| round.variant == self.variant);
        own.all(|round| round.value(&claim.quantity).is_none())
    }
}

impl Finding {
    /// Every claim that a proof judges, in the chapter's order.
    pub fn all(record: &Record) -> Vec<Self> {
        let inputs = Inputs::of(record);
        let finding = |claim: &Claim| {
            let rounds = record.rounds_of(claim);
            let compared = record.compared(&rounds);
            let measured = Measured {
                rounds: &rounds,
                compared: &compared,
                variant: &record.variant,
                users: record.chapter.users(claim.scenario()),
                looks: record.looks_at(claim.scenario()),
            };
            if claim.role == Role::Prediction {
                let predicted = in_scenario(&record.chapter, claim.scenario(), inputs);
                return Self::of_prediction(claim, &measured, predicted.as_ref());
            }
            Self::of(claim, &measured)
        };
        record
            .chapter
            .claims
            .iter()
            .filter(|claim| claim.is_proved())
            .map(finding)
            .collect()
    }

    /// A claim about what was measured.
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
        let gains = gains(claim, measured.compared);
        let gains = gains.as_ref();
        let median = |variant| median_of(&claim.quantity, measured.rounds, variant);
        Self {
            problem: median(PROBLEM),
            fix: median(measured.variant),
            ratio: gains.and_then(Gains::ratio),
            interval: gains.and_then(|gains| gains.interval_or_span(measured.looks)),
            noise_floor: gains.and_then(Gains::noise_floor),
            ..Self::empty(claim, measured)
        }
    }

    fn of_readings(claim: &Claim, measured: &Measured<'_>) -> Self {
        let worst = |variant: &str, bound: Option<Bound>| {
            let rounds = measured.rounds.iter();
            let of_variant = rounds.filter(|round| round.variant == variant);
            // A missing reading is as telling as one that is not a number: none.
            bound?.worst(of_variant.map(|round| round.value(&claim.quantity).unwrap_or(f64::NAN)))
        };
        // Of a side without a bound the reading is shown that would break the other's.
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
    ) -> Self {
        let gains = gains(claim, measured.compared);
        let gains = gains.as_ref();
        let mut finding = Self {
            problem: predicted.and_then(|predicted| predicted.problem),
            fix: predicted.and_then(|predicted| predicted.solution),
            ratio: predicted.map(|predicted| predicted.ratio),
            measured: gains.and_then(Gains::ratio),
            interval: gains.and_then(|gains| gains.interval(measured.looks)),
            ..Self::empty(claim, measured)
        };
        // All of the interval has to lie there: noise makes it wider, and never a prediction come true.
        finding.holds = finding.band().map(|(low, high)| {
            let is_within = |(from, to): (f64, f64)| low <= from && to <= high;
            finding.interval.is_some_and(is_within)
        });
        finding
    }

    /// Of a prediction that is judged: between which ratios the effect must lie. Empty where nothing is
    /// predicted.
    pub(crate) fn band(&self) -> Option<(f64, f64)> {
        let within = self.claim.within?;
        let ratio = self.ratio.unwrap_or(f64::NAN);
        Some((ratio * (1.0 - within), ratio * (1.0 + within)))
    }

    /// How far the measured ratio lies from the predicted one, as a share of that.
    pub fn off(&self) -> Option<f64> {
        Some(self.measured? / self.ratio? - 1.0)
    }

    /// What has to keep to the bound on the ratio: the interval, or the ratio of a single pair.
    pub(crate) fn decisive(&self) -> Option<(f64, f64)> {
        self.interval.or(self.ratio.map(|ratio| (ratio, ratio)))
    }

    /// What its interval is, in words that come before it.
    pub fn spread(&self) -> &'static str {
        if self.rounds < FIRST_LOOK as usize {
            "single rounds from"
        } else {
            "95 % interval"
        }
    }

    /// Whether a figure that the claim is judged by is missing.
    pub fn is_incomplete(&self) -> bool {
        let lacks = |bound: Option<Bound>, figure: Option<f64>| bound.is_some() && figure.is_none();
        lacks(self.claim.problem, self.problem)
            || lacks(self.claim.solution, self.fix)
            || lacks(self.claim.ratio, self.ratio)
    }

    /// Whether it does not hold because a figure is missing.
    pub(crate) fn is_unmeasured(&self) -> bool {
        self.is_incomplete() && self.holds == Some(false)
    }

    /// The first side that breaks its bound: the variant's word, its figure, and the bound.
    pub fn broken(&self) -> Option<(&'static str, f64, Bound)> {
        let side = |word, bound: Option<Bound>, figure: Option<f64>| {
            let (bound, figure) = (bound?, figure?);
            (!bound.holds(figure, self.users)).then_some((word, figure, bound))
        };
        side("problem", self.claim.problem, self.problem)
            .or_else(|| side("fix", self.claim.solution, self.fix))
    }

    /// The bound of the claim as it is written, for JSON; `None` for a prediction that is only told.
    pub fn bound(&self) -> Option<String> {
        let side = |word: &str, bound: Option<Bound>| bound.map(|bound| format!("{word} {bound}"));
        let within = self.claim.within.map(|within| format!("within {within}"));
        let parts = [
            side("problem", self.claim.problem),
            side("fix", self.claim.solution),
            side("ratio", self.claim.ratio),
            within,
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    fn keeps_its_bounds(&self) -> bool {
        if self.is_incomplete() {
            return false;
        }
        let ratio = |bound: Bound| {
            let (low, high) = self.decisive()?;
            // The whole interval has to keep to it.
            Some(match bound.direction {
                Direction::AtLeast => bound.holds(low, self.users),
                Direction::AtMost => bound.holds(high, self.users),
            })
        };
        self.broken().is_none()
            && self
                .claim
                .ratio
                .is_none_or(|bound| ratio(bound) == Some(true))
    }
}

/// What rounds that were measured together tell of the claim; `None` where one lacks its figure.
pub fn gains(claim: &Claim, compared: &[Option<Compared<'_>>]) -> Option<Gains> {
    let mut gains = Gains::default();
    for together in compared {
        let (problem, fixes) = together.as_ref()?.figures(&claim.quantity)?;
        gains.add(&[problem], &fixes, claim.quantity.larger_is_better())?;
    }
    Some(gains)
}

/// The median of a variant's rounds; `None` without one, or if one of them has no figure.
pub fn median_of(quantity: &Quantity, rounds: &[&Round], variant: &str) -> Option<f64> {
    prediction::median_of(rounds, variant, |round| round.value(quantity))
}

/// Whether [`median_of`] may be a lower limit only, since one of the rounds has no more.
pub fn is_at_least(quantity: &Quantity, rounds: &[&Round], variant: &str) -> bool {
    let mut own = rounds.iter().filter(|round| round.variant == variant);
    own.any(|round| round.is_at_least(quantity))
}

/// As [`median_of`], of what the generator measures.
pub fn median_metric(metric: Metric, rounds: &[&Round], variant: &str) -> Option<f64> {
    median_of(&Quantity::Metric(metric), rounds, variant)
}
