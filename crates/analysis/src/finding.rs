//! What was measured of a claim, and whether it holds. A proof and a check of the exercise judge
//! the same claims by the same function; they differ in how many rounds they have.

use measurement::{
    claim::{Bound, Claim, Direction, Metric, PROBLEM, Quantity, Role},
    record::{Purpose, Record, Round},
};

use crate::prediction::{self, Inputs, Prediction, in_scenario};
use duel::statistics::{self, REPORTED};

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
    /// Fix to problem, larger being better: the mean of the pairs. Of a prediction, what is
    /// predicted.
    pub ratio: Option<f64>,
    /// Its 95 % interval, of a prediction that of what was measured; the span of the pairs where
    /// they are fewer than three.
    pub interval: Option<(f64, f64)>,
    /// The wider interval that decides whether a ratio keeps to its bound.
    pub decisive: Option<(f64, f64)>,
    /// How far from 1 the ratio of equal servers may be: 0.05 is 5 %. Of the effect alone.
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
    /// Problem and fix of every two that followed each other; `None` in place of others.
    pub pairs: &'r [Option<(&'r Round, &'r Round)>],
    /// The variant that is compared with the problem.
    pub variant: &'r str,
    /// Simultaneous users.
    pub users: u32,
    /// Pairs at which the first look was taken, and most that would have been.
    pub looks: (u32, u32),
}

impl Measured<'_> {
    /// The tail at which this many ratios decide.
    fn tail(&self, ratios: usize) -> f64 {
        let (first, most) = self.looks;
        statistics::tail_of_look(u32::try_from(ratios).unwrap_or(u32::MAX), first, most)
    }

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
        let claims = &record.chapter.claims;
        let finding = |claim: &Claim| {
            let rounds = record.rounds_of(claim);
            let pairs = record.pairs(&rounds);
            let measured = Measured {
                rounds: &rounds,
                pairs: &pairs,
                variant: &record.variant,
                users: record.chapter.users(claim.scenario()),
                looks: record.chapter.looks(),
            };
            if claim.role == Role::Prediction {
                let predicted = in_scenario(&record.chapter, claim.scenario(), inputs);
                return Self::of_prediction(claim, &measured, predicted.as_ref());
            }
            let mut finding = Self::of(claim, &measured);
            if std::ptr::eq(claim, claims.effect()) {
                finding.noise_floor = noise_floor(record, claim);
            }
            finding
        };
        claims
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
            decisive: None,
            noise_floor: None,
            measured: None,
            holds: None,
        }
    }

    fn of_ratio(claim: &Claim, measured: &Measured<'_>) -> Self {
        let ratios = ratios(claim, measured.pairs);
        let whole: Option<Vec<f64>> = ratios.into_iter().collect();
        let whole = whole.as_deref();
        let median = |variant| median_of(&claim.quantity, measured.rounds, variant);
        Self {
            problem: median(PROBLEM),
            fix: median(measured.variant),
            ratio: whole.and_then(statistics::mean_ratio),
            interval: whole.and_then(|ratios| interval(ratios, REPORTED)),
            decisive: whole.and_then(|ratios| interval(ratios, measured.tail(ratios.len()))),
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
        let effect: Option<Vec<f64>> = ratios(claim, measured.pairs).into_iter().collect();
        let interval = effect.as_deref().and_then(|all| interval(all, REPORTED));
        let effect = effect.as_deref().and_then(statistics::mean_ratio);
        let mut finding = Self {
            problem: predicted.and_then(|predicted| predicted.problem),
            fix: predicted.and_then(|predicted| predicted.solution),
            ratio: predicted.map(|predicted| predicted.ratio),
            measured: effect,
            interval,
            ..Self::empty(claim, measured)
        };
        let near = |within: f64| {
            let Some((ratio, measured)) = finding.ratio.zip(finding.measured) else {
                return false;
            };
            let (low, high) = finding.interval.unwrap_or((measured, measured));
            // The interval may reach as far as this on either side of what is predicted.
            high >= ratio * (1.0 - within) && low <= ratio * (1.0 + within)
        };
        finding.holds = claim.within.map(near);
        finding
    }

    /// How far the measured ratio lies from the predicted one, as a share of that.
    pub fn off(&self) -> Option<f64> {
        Some(self.measured? / self.ratio? - 1.0)
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
            let (low, high) = self.decisive.or(self.ratio.map(|ratio| (ratio, ratio)))?;
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

/// The ratio of each pair; `None` where a side has no figure.
pub fn ratios(claim: &Claim, pairs: &[Option<(&Round, &Round)>]) -> Vec<Option<f64>> {
    let ratio = |pair: &Option<(&Round, &Round)>| {
        let (problem, fix) = (*pair)?;
        gain(claim, problem, fix)
    };
    pairs.iter().map(ratio).collect()
}

/// How many times better `better` is than `worse`; `None` where one has no figure.
fn gain(claim: &Claim, worse: &Round, better: &Round) -> Option<f64> {
    let quantity = &claim.quantity;
    Some(quantity.gain(worse.value(quantity)?, better.value(quantity)?))
}

/// Fewer pairs than this have no interval but their span.
const PAIRS: usize = 3;

fn interval(ratios: &[f64], tail: f64) -> Option<(f64, f64)> {
    if ratios.len() >= PAIRS {
        return statistics::interval(ratios, tail);
    }
    let of = |pick: fn(f64, f64) -> f64| ratios.iter().copied().reduce(pick);
    (ratios.len() > 1)
        .then(|| of(f64::min).zip(of(f64::max)))
        .flatten()
}

/// The median of a variant's rounds; `None` without one, or if one of them has no figure.
pub fn median_of(quantity: &Quantity, rounds: &[&Round], variant: &str) -> Option<f64> {
    prediction::median_of(rounds, variant, |round| round.value(quantity))
}

/// As [`median_of`], of what the generator measures.
pub fn median_metric(metric: Metric, rounds: &[&Round], variant: &str) -> Option<f64> {
    median_of(&Quantity::Metric(metric), rounds, variant)
}

/// From every two rounds of the fix that followed each other in the effect's scenario: a fix and the
/// fix again of each triplet.
fn noise_floor(record: &Record, effect: &Claim) -> Option<f64> {
    let of_fix: Vec<&Round> = record
        .rounds
        .iter()
        .filter(|round| matches!(round.purpose, Purpose::Claim | Purpose::Equal))
        .filter(|round| round.scenario == effect.scenario() && round.variant == record.variant)
        .collect();
    let gains = of_fix
        .chunks_exact(2)
        .map(|two| gain(effect, two[0], two[1]));
    let equal: Option<Vec<f64>> = gains.collect();
    statistics::noise_floor(&equal?)
}
