//! What a record shows about a chapter's claims: proved, inconclusive, refuted, or invalid.
//!
//! [`analyse`] is a pure function of the record, so that a capture can be
//! judged again at any time and every branch can be tested without a server.

use duel::figures;
use measurement::{
    claim::{Bound, Role},
    record::Record,
};
use serde::{Deserialize, Serialize};

use crate::{
    finding::Finding,
    prediction::{Inputs, Prediction, nothing_to_gain, predicted},
    validity::{self, lack},
};

/// What a run shows about the claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VerdictKind {
    /// Every claim holds.
    Proved,
    /// The run cannot tell: the interval includes no gain, or straddles the bound.
    // As the first edition wrote it into a reader's progress.
    #[serde(alias = "not shown")]
    Inconclusive,
    /// The root cause contradicts the claim, or the whole interval lies below it.
    Refuted,
    /// The run says nothing about the claims, whatever its figures.
    Invalid,
}

impl std::fmt::Display for VerdictKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Proved => "proved",
            Self::Inconclusive => "inconclusive",
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
#[derive(Debug, Clone, PartialEq)]
pub struct Analysis {
    /// What the law predicts in the effect's scenario; `None` if what it is read off is missing.
    pub prediction: Option<Prediction>,
    /// Every claim with its figures, in the chapter's order.
    pub findings: Vec<Finding>,
    /// What follows.
    pub verdict: Verdict,
}

impl Analysis {
    /// The chapter's own effect.
    pub fn effect(&self) -> Option<&Finding> {
        self.of(Role::Effect).next()
    }

    /// The chapter's own root cause.
    pub fn root_cause(&self) -> Option<&Finding> {
        self.of(Role::RootCause).next()
    }

    /// The findings of one role, in the chapter's order.
    pub fn of(&self, role: Role) -> impl Iterator<Item = &Finding> {
        self.findings
            .iter()
            .filter(move |finding| finding.claim.role == role)
    }
}

/// Computes the figures of a record and judges them.
pub fn analyse(record: &Record) -> Analysis {
    let chapter = &record.chapter;
    let mut analysis = Analysis {
        prediction: predicted(&chapter.law, chapter.effect_scenario(), Inputs::of(record)),
        findings: Finding::all(record),
        verdict: Verdict {
            kind: VerdictKind::Invalid,
            reason: "the chapter claims no effect.".to_owned(),
        },
    };
    if let Some((effect, root_cause)) = analysis.effect().zip(analysis.root_cause()) {
        analysis.verdict = judge(record, &analysis, effect, root_cause);
    }
    analysis
}

/// Whether more rounds would change nothing: the verdict is certain, or this machine cannot show the
/// claim at all.
pub fn is_decided(record: &Record) -> bool {
    let (chapter, inputs) = (&record.chapter, Inputs::of(record));
    let pairs = record.effect_rounds().len() / 2;
    pairs >= chapter.conditions.pairs_at_least as usize
        && (lack(&chapter.conditions, &record.environment).is_some()
            || nothing_to_gain(&chapter.law, inputs).is_some()
            || matches!(
                analyse(record).verdict.kind,
                VerdictKind::Proved | VerdictKind::Refuted
            ))
}

/// The first of these that applies: the run says nothing (invalid); a count
/// contradicts its claim (refuted); the machine cannot show it, or no gain is
/// to be seen (inconclusive); the gain is smaller than claimed (refuted), or may
/// be (inconclusive); another claim does not hold (inconclusive); otherwise proved.
fn judge(record: &Record, analysis: &Analysis, effect: &Finding, root_cause: &Finding) -> Verdict {
    let verdict = |kind, reason| Verdict { kind, reason };
    if let Some(cause) = validity::cause_against(
        record,
        &analysis.findings,
        analysis.prediction.as_ref(),
        effect,
    ) {
        return verdict(VerdictKind::Invalid, cause);
    }
    if let Some(nothing) = nothing_to_gain(&record.chapter.law, Inputs::of(record)) {
        return verdict(VerdictKind::Inconclusive, nothing);
    }
    if let Some(contradiction) = analysis.of(Role::RootCause).find_map(contradiction) {
        return verdict(VerdictKind::Refuted, contradiction);
    }
    if let Some(lack) = lack(&record.chapter.conditions, &record.environment) {
        return verdict(VerdictKind::Inconclusive, lack);
    }
    let (Some(ratio), Some((low, high)), Some(decisive), Some(floor), Some(bound)) = (
        effect.ratio,
        effect.interval,
        effect.decisive,
        effect.noise_floor,
        effect.claim.ratio,
    ) else {
        // `cause_against` has named the round that lacks a figure; this is for the compiler.
        return verdict(VerdictKind::Invalid, "the effect has no figure.".to_owned());
    };
    let limit = bound.limit(effect.users);
    let measured = format!(
        "{}: {} (95 % interval {} to {})",
        effect.claim.label(),
        figures::gain(ratio),
        figures::ratio(low),
        figures::ratio(high)
    );
    if low <= 1.0 + floor && high >= 1.0 / (1.0 + floor) {
        let reason = format!(
            "{measured}, which includes no gain at all, since equal servers differ by {}.",
            figures::percent(floor)
        );
        return verdict(VerdictKind::Inconclusive, reason);
    }
    let claimed = figures::ratio(limit);
    if decisive.1 < limit {
        let reason = format!("{measured}, all of it below the claimed {claimed} times.");
        return verdict(VerdictKind::Refuted, reason);
    }
    if decisive.0 < limit {
        let reason = format!(
            "{measured}, a gain, but it is not certain that it reaches the claimed {claimed} times; more \
             rounds may tell, as with --pairs {}.",
            2 * record.chapter.rounds.pairs
        );
        return verdict(VerdictKind::Inconclusive, reason);
    }
    if let Some(cause) = too_noisy_for_the_prediction(analysis, floor) {
        return verdict(VerdictKind::Invalid, format!("{measured}, but {cause}"));
    }
    if let Some(shortfall) = analysis.findings.iter().find_map(shortfall) {
        let reason = format!("{measured}, but {shortfall}");
        return verdict(VerdictKind::Inconclusive, reason);
    }
    let unit = root_cause.claim.unit;
    let counted = |figure: Option<f64>| unit.text(figure.unwrap_or(f64::NAN));
    let reason = format!(
        "{measured}, where at least {claimed} was claimed; {}: {} against {}.",
        root_cause.claim.label(),
        counted(root_cause.problem),
        counted(root_cause.fix),
    );
    verdict(VerdictKind::Proved, reason)
}

/// A prediction that is off on a machine which changed its pace meanwhile: the rounds that it was read off
/// and those that it is compared with are a minute apart.
fn too_noisy_for_the_prediction(analysis: &Analysis, floor: f64) -> Option<String> {
    let missed = analysis.of(Role::Prediction).find(|finding| {
        let within = finding.claim.within;
        finding.holds == Some(false) && within.is_some_and(|within| floor > within / 2.0)
    })?;
    Some(format!(
        "equal servers differed by {}, so that a prediction of {} times cannot be judged within {}; \
         run it again when the machine has less to do.",
        figures::percent(floor),
        figures::ratio(missed.ratio?),
        figures::percent(missed.claim.within?)
    ))
}

/// The sentence about a claim that does not hold; `None` for one that does.
fn shortfall(finding: &Finding) -> Option<String> {
    if finding.holds != Some(false) {
        return None;
    }
    let claim = &finding.claim;
    let known = |value: Option<f64>, text: fn(f64) -> String| {
        value.map_or_else(|| "unknown".to_owned(), text)
    };
    if claim.role == Role::Prediction {
        return Some(format!(
            "in the scenario `{}` the law predicts {} times and {} was measured, {} apart; at most {} \
             was claimed.",
            claim.scenario(),
            known(finding.ratio, figures::ratio),
            known(finding.measured, figures::ratio),
            known(finding.off().map(f64::abs), figures::percent),
            known(claim.within, figures::percent)
        ));
    }
    if let Some((side, figure, bound)) = finding.broken() {
        return Some(format!(
            "{}: {} in the {side}, {} was claimed.",
            claim.label(),
            claim.unit.text(figure),
            claim_bound(finding, bound),
        ));
    }
    let bound = claim.ratio?;
    let (low, high) = finding
        .decisive
        .or(finding.ratio.map(|ratio| (ratio, ratio)))?;
    // A further effect has too few pairs for an interval: it is judged by their span.
    let spread = match claim.role {
        Role::Effect => "pairs from",
        _ => "decided by",
    };
    Some(format!(
        "{} in the scenario `{}`: {} of the problem's ({spread} {} to {}); {} was claimed.",
        claim.label(),
        claim.scenario(),
        known(finding.ratio, share_or_times),
        share_or_times(low),
        share_or_times(high),
        bound.in_words_of(share_or_times(bound.number)),
    ))
}

/// A ratio near 1 as a share, a larger one as a factor.
fn share_or_times(ratio: f64) -> String {
    if ratio < 2.0 {
        figures::percent(ratio)
    } else {
        format!("{} times", figures::ratio(ratio))
    }
}

/// A bound in words, in the claim's unit.
pub fn claim_bound(finding: &Finding, bound: Bound) -> String {
    bound.in_words_of(finding.claim.unit.text(bound.limit(finding.users)))
}

/// The sentence about a count that breaks its bound.
fn contradiction(finding: &Finding) -> Option<String> {
    let (side, reading, bound) = finding.broken()?;
    Some(format!(
        "the root cause contradicts the claim: {} was {} in the {side}, {} was claimed.",
        finding.claim.label(),
        finding.claim.unit.text(reading),
        claim_bound(finding, bound)
    ))
}
