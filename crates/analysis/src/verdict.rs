//! What a record shows about a claim: proved, not shown, refuted, or invalid.
//!
//! [`analyse`] is a pure function of the record, so that a capture can be
//! judged again at any time and every branch can be tested without a server.

mod findings;
mod validity;

use serde::{Deserialize, Serialize};

pub use self::findings::{
    BoundFinding, EffectFinding, LawFinding, MechanismFinding, PointFinding, median_of,
};
pub(crate) use self::validity::{fault, generator_bound, throttled, unoptimised};
use crate::{
    prediction::{Inputs, Prediction, nothing_to_gain, predicted},
    price::PriceFinding,
    utilisation::UtilisedFinding,
};
use measurement::{
    claim::{Bound, Conditions},
    environment::Environment,
    figures,
    record::Record,
};

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

/// Everything that a record shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    /// What the law predicted in the effect's setting; `None` if a profile that it needs is missing.
    pub prediction: Option<Prediction>,
    /// Prediction and measurement side by side.
    pub law: Option<LawFinding>,
    /// The mechanism.
    pub mechanism: MechanismFinding,
    /// The effect.
    pub effect: EffectFinding,
    /// The nearness to the law's bound, where the chapter claims one and it was measured.
    pub bound: Option<BoundFinding>,
    /// The nearness to the utilisation law's bound, where the chapter claims a share.
    pub utilised: Option<UtilisedFinding>,
    /// What the solution cost, where the chapter claims that.
    #[serde(default)]
    pub price: Option<PriceFinding>,
    /// Other settings of the law.
    pub points: Vec<PointFinding>,
    /// What follows.
    pub verdict: Verdict,
}

/// Computes the figures of a record and judges them.
pub fn analyse(record: &Record) -> Analysis {
    let chapter = &record.chapter;
    let prediction = predicted(&chapter.law, chapter.effect_setting(), Inputs::of(record));
    let effect = EffectFinding::of(record);
    let mut analysis = Analysis {
        law: LawFinding::of(record, prediction.as_ref(), &effect),
        prediction,
        mechanism: MechanismFinding::of(record),
        effect,
        bound: BoundFinding::of(record),
        utilised: UtilisedFinding::of(record),
        price: PriceFinding::of(record),
        points: PointFinding::all(record),
        verdict: Verdict {
            kind: VerdictKind::Invalid,
            reason: String::new(),
        },
    };
    analysis.verdict = judge(record, &analysis);
    analysis
}

/// The first of these that applies: the run says nothing (invalid); the count
/// contradicts the claim (refuted); the machine cannot show it, or no gain is
/// to be seen (not shown); the gain is smaller than claimed (refuted), or may
/// be (not shown); otherwise proved.
fn judge(record: &Record, analysis: &Analysis) -> Verdict {
    let Analysis {
        mechanism, effect, ..
    } = analysis;
    let verdict = |kind, reason| Verdict { kind, reason };
    if let Some(cause) = validity::cause_against(record, analysis) {
        return verdict(VerdictKind::Invalid, cause);
    }
    if let Some(nothing) = nothing_to_gain(&record.chapter.law, Inputs::of(record)) {
        return verdict(VerdictKind::NotShown, nothing);
    }
    if let Some(contradiction) = contradiction(record, mechanism) {
        return verdict(VerdictKind::Refuted, contradiction);
    }
    if let Some(lack) = lack(&record.chapter.conditions, &record.environment) {
        return verdict(VerdictKind::NotShown, lack);
    }
    let (Some(ratio), Some((low, high)), Some(floor)) =
        (effect.ratio, effect.interval, effect.noise_floor)
    else {
        // `cause_against` has named the round that lacks a figure; this is for the compiler.
        return verdict(VerdictKind::Invalid, "the effect has no figure.".to_owned());
    };
    let metric = effect.metric.label();
    let measured = format!(
        "{metric}: {} (95 % interval {} to {})",
        figures::gain(ratio),
        figures::ratio(low),
        figures::ratio(high)
    );
    let claimed = figures::ratio(effect.claimed);
    if low <= 1.0 + floor && high >= 1.0 / (1.0 + floor) {
        let reason = format!(
            "{measured}, which includes no gain at all, since equal servers differ by {}.",
            figures::percent(floor)
        );
        return verdict(VerdictKind::NotShown, reason);
    }
    if high < effect.claimed {
        let reason = format!("{measured}, all of it below the claimed {claimed} times.");
        return verdict(VerdictKind::Refuted, reason);
    }
    if low < effect.claimed {
        let reason = format!(
            "{measured}, a gain, but the interval straddles the claimed {claimed} times; more rounds \
             may tell, as with --pairs {}.",
            2 * record.chapter.rounds.pairs
        );
        return verdict(VerdictKind::NotShown, reason);
    }
    if let Some(cause) = too_noisy_for_the_law(analysis, floor) {
        return verdict(VerdictKind::Invalid, format!("{measured}, but {cause}"));
    }
    if let Some(shortfall) = shortfall(analysis) {
        let reason = format!("{measured}, but {shortfall}");
        return verdict(VerdictKind::NotShown, reason);
    }
    let reason = format!(
        "{measured}, where at least {claimed} was claimed; {}: {} against {}.",
        mechanism.name,
        figures::count(mechanism.problem.unwrap_or(f64::NAN)),
        figures::count(mechanism.solution.unwrap_or(f64::NAN)),
    );
    verdict(VerdictKind::Proved, reason)
}

/// A prediction that is off on a machine which changed its pace meanwhile: the profile that it was
/// read off and the rounds that it is compared with are minutes apart.
fn too_noisy_for_the_law(analysis: &Analysis, floor: f64) -> Option<String> {
    let law = analysis.law.as_ref().filter(|law| !law.holds())?;
    let within = law.within.filter(|within| floor > within / 2.0)?;
    Some(format!(
        "equal servers differed by {}, so that a law which predicted {} times cannot be judged \
         within {}; run it again when the machine has less to do.",
        figures::percent(floor),
        figures::ratio(law.predicted),
        figures::percent(within)
    ))
}

/// What else the chapter claims and the run does not show.
fn shortfall(analysis: &Analysis) -> Option<String> {
    if let Some(bound) = analysis
        .bound
        .as_ref()
        .filter(|bound| bound.share < bound.claimed)
    {
        return Some(format!(
            "the solution reached {} of the law's bound of {} a second; {} was claimed.",
            figures::percent(bound.share),
            figures::count(bound.bound.round()),
            figures::percent(bound.claimed)
        ));
    }
    let utilised = analysis.utilised.as_ref();
    if let Some(idle) = utilised.and_then(UtilisedFinding::shortfall) {
        return Some(idle);
    }
    if let Some(too_dear) = analysis.price.as_ref().and_then(PriceFinding::shortfall) {
        return Some(too_dear);
    }
    if let Some(point) = analysis.points.iter().find(|point| !point.holds()) {
        return Some(format!(
            "in the setting `{}` a pair gave {}; at least {} times was claimed.",
            point.setting,
            figures::gain(point.smallest.unwrap_or(f64::NAN)),
            figures::ratio(point.claimed.unwrap_or(f64::NAN))
        ));
    }
    let law = analysis.law.as_ref().filter(|law| !law.holds())?;
    Some(format!(
        "the law predicted {} times, which is {} off; {} was claimed.",
        figures::ratio(law.predicted),
        figures::percent(law.off.abs()),
        figures::percent(law.within.unwrap_or(0.0))
    ))
}

/// The sentence about a count that breaks its limit.
fn contradiction(record: &Record, mechanism: &MechanismFinding) -> Option<String> {
    let claim = &record.chapter.mechanism;
    let users = record.chapter.mechanism_users();
    let (variant, reading, bound) = if !mechanism.problem_holds {
        ("problem", mechanism.problem?, claim.problem)
    } else if !mechanism.solution_holds {
        ("solution", mechanism.solution?, claim.solution)
    } else {
        return None;
    };
    Some(format!(
        "the mechanism contradicts the claim: {} was {} in the {variant}, {} was claimed.",
        mechanism.name,
        figures::count(reading),
        limit_in_words(bound, users)
    ))
}

/// A limit as `at most 1` or `at least 900`.
pub fn limit_in_words(bound: Bound, users: u32) -> String {
    let direction = match bound {
        Bound::AtMost(_) => "at most",
        Bound::AtLeast(_) | Bound::AtLeastShareOfUsers(_) => "at least",
    };
    format!("{direction} {}", figures::count(bound.limit(users)))
}

/// What the machine lacks for the claim to show on it.
fn lack(conditions: &Conditions, environment: &Environment) -> Option<String> {
    let lacks = |what: &str, has: u32, needs: u32| {
        (has < needs).then(|| {
            format!("this machine cannot show it: the claim needs {needs} {what}, and here there is {has}; the mechanism is shown instead.")
        })
    };
    lacks(
        "processors",
        environment.processors_usable,
        conditions.processors_at_least,
    )
    .or_else(|| {
        lacks(
            "memory regions",
            environment.memory_regions,
            conditions.memory_regions_at_least,
        )
    })
}
