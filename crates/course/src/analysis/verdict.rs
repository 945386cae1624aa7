//! What a record shows about a chapter's claims: proved, inconclusive, refuted, or invalid.
//!
//! [`analyse`] is a pure function of the record, so that a capture can be
//! judged again at any time and every branch can be tested without a server.

use crate::measurement::{
    claim::{Bound, Role},
    record::Record,
};
use engine::figures;
use serde::{Deserialize, Serialize};

use crate::analysis::{
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
    chapter.looks().is_one(record.triplets())
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
    let (Some(ratio), Some((low, high)), Some(floor), Some(bound)) = (
        effect.ratio,
        effect.interval,
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
    if high < limit {
        let reason = format!("{measured}, all of it below the claimed {claimed} times.");
        return verdict(VerdictKind::Refuted, reason);
    }
    if low < limit {
        let reason = format!(
            "{measured}, a gain, but it is not certain that it reaches the claimed {claimed} times; {}.",
            more_rounds(record)
        );
        return verdict(VerdictKind::Inconclusive, reason);
    }
    let shortfall = |finding| shortfall(record, finding);
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

fn more_rounds(record: &Record) -> String {
    let more = 2 * record.chapter.rounds.pairs;
    format!("more rounds may tell, as with --pairs {more}")
}

/// The sentence about a prediction that did not come true, or not certainly.
fn missed(record: &Record, finding: &Finding) -> Option<String> {
    let ((from, to), within) = finding.band().zip(finding.claim.within)?;
    let predicted = format!(
        "in the scenario `{}` the law predicts {} times",
        finding.claim.scenario(),
        figures::ratio(finding.ratio?)
    );
    let (measured, within) = (finding.measured?, figures::percent(within));
    let Some((low, high)) = finding.interval else {
        return Some(format!(
            "{predicted}, and there are too few rounds to say whether it holds."
        ));
    };
    let seen = format!(
        "{} was measured, {} apart (95 % interval {} to {})",
        figures::ratio(measured),
        figures::percent(finding.off()?.abs()),
        figures::ratio(low),
        figures::ratio(high)
    );
    let claimed = format!("at most {within} was claimed");
    Some(if high < from || low > to {
        format!("{predicted} and {seen}; {claimed}.")
    } else if (from..=to).contains(&measured) {
        format!(
            "{predicted} and {seen}, of which a part is further than the claimed {within}; {}.",
            more_rounds(record)
        )
    } else {
        format!("{predicted} and {seen}; {claimed}, and more rounds would hardly bring it there.")
    })
}

/// The sentence about a claim that does not hold; `None` for one that does.
fn shortfall(record: &Record, finding: &Finding) -> Option<String> {
    if finding.holds != Some(false) {
        return None;
    }
    let claim = &finding.claim;
    let known = |value: Option<f64>, text: fn(f64) -> String| {
        value.map_or_else(|| "unknown".to_owned(), text)
    };
    if claim.role == Role::Prediction {
        return missed(record, finding);
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
    let (low, high) = finding.decisive()?;
    let spread = finding.spread();
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
