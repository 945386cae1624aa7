//! The verdict on a chapter's claims: proved, inconclusive, refuted, or invalid.
//!
//! [`analyse`] is a pure function of the record, so that a capture can be
//! judged again at any time and every branch can be tested without a server.

use crate::measurement::{
    claim::{Bound, PROBLEM, Role},
    record::Record,
};
use serde::{Deserialize, Serialize};
use statistics::figures;
use statistics::verdict::Verdict;

use crate::analysis::{
    finding::Finding,
    machine::Machine,
    prediction::{Inputs, Prediction, nothing_to_gain, offered, predicted},
    validity::{self, lack},
};

/// Kinds of a verdict on the claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VerdictKind {
    /// Every claim holds.
    Proved,
    /// The run cannot tell: the interval includes no gain, or straddles the bound.
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

/// Conclusions from a record.
#[derive(Debug, Clone, PartialEq)]
pub struct Analysis {
    /// Prediction in the effect's scenario; `None` if the figures that it needs are missing.
    pub prediction: Option<Prediction>,
    /// Every claim with its figures, in the chapter's order.
    pub findings: Vec<Finding>,
    /// The verdict.
    pub verdict: Verdict<VerdictKind>,
}

impl Analysis {
    /// Returns the chapter's own effect.
    pub fn effect(&self) -> Option<&Finding> {
        self.of(Role::Effect).next()
    }

    /// Returns the chapter's own root cause.
    pub fn root_cause(&self) -> Option<&Finding> {
        self.of(Role::RootCause).next()
    }

    /// Returns the findings of one role, in the chapter's order.
    pub fn of(&self, role: Role) -> impl Iterator<Item = &Finding> {
        self.findings
            .iter()
            .filter(move |finding| finding.claim.role == role)
    }
}

/// Computes the figures of a record and judges them.
pub fn analyse(record: &Record) -> Analysis {
    let chapter = &record.chapter;
    let machine = Machine::during(validity::judged(record));
    let mut findings = Finding::all(record);
    if machine.was_busy() {
        // A law does not account for CPUs that other programs share.
        for finding in &mut findings {
            if finding.claim.role == Role::Prediction && finding.holds == Some(false) {
                finding.holds = None;
            }
        }
    }
    let effect = chapter.claims.effect().scenario();
    let scenario = offered(chapter.effect_scenario(), &record.claimed_in(effect));
    let mut analysis = Analysis {
        prediction: predicted(&chapter.law, &scenario, Inputs::of(record)),
        findings,
        verdict: verdict(
            VerdictKind::Invalid,
            "the chapter claims no effect.".to_owned(),
        ),
    };
    if let (Some(effect), Some(root_cause)) = (analysis.effect(), analysis.root_cause()) {
        let run = Run {
            record,
            analysis: &analysis,
            machine: &machine,
            effect,
            root_cause,
        };
        analysis.verdict = run.judge();
    }
    analysis
}

/// Returns whether more rounds would change nothing: the verdict is certain, or this machine cannot show the
/// claim at all. Ask only at the looks that the intervals allow for.
pub fn is_decided(record: &Record) -> bool {
    let chapter = &record.chapter;
    let verdict = analyse(record).verdict.kind;
    lack(&chapter.conditions, &record.environment).is_some()
        || nothing_to_gain(&chapter.law, Inputs::of(record)).is_some()
        || matches!(verdict, VerdictKind::Proved | VerdictKind::Refuted)
}

/// A record with its analysis.
struct Run<'r> {
    record: &'r Record,
    analysis: &'r Analysis,
    machine: &'r Machine,
    effect: &'r Finding,
    root_cause: &'r Finding,
}

impl Run<'_> {
    /// Judges by the first rule that applies:
    ///
    /// - Invalid: the run says nothing.
    /// - Refuted: a count contradicts its claim.
    /// - Inconclusive: the machine cannot show it, or no gain is visible.
    /// - Refuted: the gain is smaller than claimed. Inconclusive: it may be smaller, or the machine may be
    ///   the cause.
    /// - Inconclusive: another claim does not hold, or other programs may have made the gain look larger.
    /// - Proved.
    fn judge(&self) -> Verdict<VerdictKind> {
        if let Some(spoiled) = self.spoiled() {
            return spoiled;
        }
        let (record, effect) = (self.record, self.effect);
        if let Some(nothing) = nothing_to_gain(&record.chapter.law, Inputs::of(record)) {
            return verdict(VerdictKind::Inconclusive, nothing);
        }
        for finding in self.analysis.of(Role::RootCause) {
            let Some(contradiction) = contradiction(finding) else {
                continue;
            };
            if finding.lacks_some_users() && self.machine.was_busy() {
                return self.undecided(&contradiction, Remedy::AnotherRun);
            }
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
            // `cause_against` has named the round that lacks a figure; the compiler does not know that.
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
        let claimed = figures::ratio(limit);
        if let Some(noise) = validity::too_noisy(effect, floor) {
            return self.undecided(&format!("{measured}, but {noise}."), Remedy::MoreRounds);
        }
        if low <= 1.0 + floor && high >= 1.0 / (1.0 + floor) {
            let none = format!(
                "{measured}, which includes no gain at all, since equal servers differ by {}.",
                figures::percent(floor)
            );
            return self.undecided(&none, Remedy::MoreRounds);
        }
        if high < limit {
            let below = format!("{measured}, all of it below the claimed {claimed} times.");
            if self.machine.may_be_to_blame() {
                return self.undecided(&below, Remedy::AnotherRun);
            }
            return verdict(VerdictKind::Refuted, below);
        }
        if low < limit {
            let uncertain = format!(
                "{measured}, a gain, but it is not certain that it reaches the claimed {claimed} times."
            );
            return self.undecided(&uncertain, Remedy::MoreRounds);
        }
        if self.measures_the_generator() {
            let bound = format!("{measured}, but the generator was the problem's limit, too.");
            return self.undecided(&bound, Remedy::AnotherRun);
        }
        for finding in &self.analysis.findings {
            if let Some((shortfall, remedy)) = shortfall(finding) {
                return self.undecided(&format!("{measured}, but {shortfall}"), remedy);
            }
        }
        let root_cause = self.root_cause;
        let claims = format!(
            "where at least {claimed} was claimed; {}: {} against {}",
            root_cause.claim.label(),
            counted(root_cause, root_cause.problem),
            counted(root_cause, root_cause.fix),
        );
        let others = Machine::beside_others(validity::of_effects(record));
        if let Some(how) = record.chapter.noise.flatters()
            && others.was_busy()
        {
            let flattered = Run {
                machine: &others,
                ..*self
            };
            let seen = format!(
                "{measured}, where at least {claimed} was claimed, but the machine was busy, {how}."
            );
            return flattered.undecided(&seen, Remedy::AnotherRun);
        }
        let machine = Machine::during(validity::of_effects(record));
        let reason = match machine.blame() {
            Some(blame) if machine.was_busy() => {
                format!(
                    "{}: at least {} times better, {claims}. The machine was busy, so the real gain may be larger: {blame}.",
                    effect.claim.label(),
                    figures::ratio(low),
                )
            }
            _ => format!("{measured}, {claims}."),
        };
        verdict(VerdictKind::Proved, reason)
    }

    /// Returns the verdict on a run whose rounds cannot be judged.
    fn spoiled(&self) -> Option<Verdict<VerdictKind>> {
        let (record, effect) = (self.record, self.effect);
        if self.machine.was_busy()
            && let Some(late) = validity::unanswered(record)
        {
            return Some(self.undecided(&late, Remedy::MoreRounds));
        }
        if let Some(cause) = validity::cause_against(record, effect) {
            return Some(verdict(VerdictKind::Invalid, cause));
        }
        if let Some(few) = validity::too_few(record) {
            // A service that answers nothing is set aside as well, and no other program is to blame for that.
            let set_aside = Machine::during(validity::set_aside(record));
            if !set_aside.was_busy() {
                return Some(verdict(VerdictKind::Invalid, few));
            }
            let of_busy = Run {
                machine: &set_aside,
                ..*self
            };
            return Some(of_busy.undecided(&few, Remedy::AnotherRun));
        }
        let missing = validity::missing(&self.analysis.findings, effect)?;
        Some(verdict(VerdictKind::Invalid, missing))
    }

    /// Makes the verdict on a run that cannot tell: the cause and its size, the remedy, and the figures so
    /// far.
    fn undecided(&self, seen: &str, remedy: Remedy) -> Verdict<VerdictKind> {
        let more = 2 * self.record.chapter.rounds.pairs;
        let close = self.machine.remedy();
        let reason = match self.machine.blame() {
            Some(blame) if self.machine.may_be_to_blame() => format!(
                "not decided: {blame}. {close}. {}{}",
                capitalised(seen),
                self.so_far()
            ),
            // A disturbance below the limit may still be the cause.
            Some(blame) => format!(
                "{seen} {}, which may be why. {close}, or take more rounds: --triplets {more}.",
                capitalised(&blame)
            ),
            None => match remedy {
                Remedy::MoreRounds => format!("{seen} More rounds may tell: --triplets {more}."),
                Remedy::AnotherRun => format!(
                    "{seen} More rounds would hardly change that; a run on another day may."
                ),
                Remedy::TheEdit => format!("{seen} Look at what else the fix changed."),
            },
        };
        verdict(VerdictKind::Inconclusive, reason)
    }

    /// Formats the counts of a fix whose effect is not decided; empty if they contradict the claim.
    fn so_far(&self) -> String {
        let root_cause = self.root_cause;
        if root_cause.holds != Some(true) {
            return String::new();
        }
        format!(
            " The fix looks right so far: {}: {}, where the problem has {}.",
            root_cause.claim.label(),
            counted(root_cause, root_cause.fix),
            counted(root_cause, root_cause.problem),
        )
    }

    /// Returns whether the generator was the limit of a problem's round, so that its throughput is too small and the
    /// gain too large.
    fn measures_the_generator(&self) -> bool {
        if !self.effect.claim.quantity.larger_is_better() {
            return false;
        }
        let mut rounds = self.record.effect_rounds().into_iter();
        rounds.any(|round| round.variant == PROBLEM && round.outcome.generator.is_bound())
    }
}

/// Remedy if the machine was quiet.
#[derive(Debug, Clone, Copy)]
enum Remedy {
    /// The interval is too wide.
    MoreRounds,
    /// The interval lies elsewhere.
    AnotherRun,
    /// The fix costs something.
    TheEdit,
}

/// Makes a verdict on claims. Only claims that are proved are good.
pub fn verdict(kind: VerdictKind, reason: String) -> Verdict<VerdictKind> {
    Verdict {
        kind,
        is_good: kind == VerdictKind::Proved,
        reason,
    }
}

fn counted(finding: &Finding, figure: Option<f64>) -> String {
    finding.claim.unit.text(figure.unwrap_or(f64::NAN))
}

pub(super) fn capitalised(text: &str) -> String {
    let mut rest = text.chars();
    match rest.next() {
        Some(first) => first.to_uppercase().chain(rest).collect(),
        None => String::new(),
    }
}

/// Formats the sentence about a prediction that does not hold, or not certainly.
fn missed(finding: &Finding) -> Option<(String, Remedy)> {
    let (from, to) = finding.band()?;
    let scenario = finding.claim.scenario();
    let (Some(ratio), Some(measured)) = (finding.ratio, finding.measured) else {
        let none = format!(
            "the rounds for the law fit no prediction for the scenario `{scenario}`, as if the machine had changed its \
             pace between them."
        );
        return Some((none, Remedy::AnotherRun));
    };
    let predicted = format!(
        "in the scenario `{scenario}` the law predicts {} times",
        figures::ratio(ratio)
    );
    let Some((low, high)) = finding.interval else {
        let few = format!("{predicted}, and there are too few rounds to say whether it holds.");
        return Some((few, Remedy::MoreRounds));
    };
    let seen = format!(
        "{predicted} and {} was measured, {} apart (95 % interval {} to {})",
        figures::ratio(measured),
        figures::percent(finding.off()?.abs()),
        figures::ratio(low),
        figures::ratio(high)
    );
    let within = figures::percent(finding.claim.within?);
    if (from..=to).contains(&measured) && high >= from && low <= to {
        let part = format!("{seen}, of which a part is further than the claimed {within}.");
        return Some((part, Remedy::MoreRounds));
    }
    let all = format!("{seen}; at most {within} was claimed.");
    Some((all, Remedy::AnotherRun))
}

/// Formats the sentence about a claim that does not hold, with its remedy; `None` for one that holds.
fn shortfall(finding: &Finding) -> Option<(String, Remedy)> {
    if finding.holds != Some(false) {
        return None;
    }
    let claim = &finding.claim;
    if claim.role == Role::Prediction {
        return missed(finding);
    }
    if let Some((side, figure, bound)) = finding.broken() {
        let broken = format!(
            "{}: {} in the {side}, {} was claimed.",
            claim.label(),
            claim.quantity.text(claim.unit, figure),
            claim_bound(finding, bound),
        );
        return Some((broken, Remedy::TheEdit));
    }
    let bound = claim.ratio?;
    let limit = bound.limit(finding.users);
    let (low, high) = finding.decisive()?;
    // One unit for all of them: shares below 2, or else factors.
    let largest = high.max(limit);
    let share_or_times = |ratio: f64| {
        if largest < 2.0 {
            figures::percent(ratio)
        } else {
            format!("{} times", figures::ratio(ratio))
        }
    };
    let ratio = match finding.ratio {
        Some(ratio) => share_or_times(ratio),
        None => "unknown".to_owned(),
    };
    let spread = finding.spread();
    let short = format!(
        "{} in the scenario `{}`: {ratio} of the problem's ({spread} {} to {}); {} was claimed.",
        claim.label(),
        claim.scenario(),
        share_or_times(low),
        share_or_times(high),
        bound.in_words_of(share_or_times(limit)),
    );
    let remedy = if low <= limit && limit <= high {
        Remedy::MoreRounds
    } else {
        Remedy::AnotherRun
    };
    Some((short, remedy))
}

/// Formats a bound in words, in the claim's unit.
pub fn claim_bound(finding: &Finding, bound: Bound) -> String {
    let claim = &finding.claim;
    bound.in_words_of(claim.quantity.text(claim.unit, bound.limit(finding.users)))
}

/// Formats the sentence about a count that breaks its bound.
fn contradiction(finding: &Finding) -> Option<String> {
    let (side, reading, bound) = finding.broken()?;
    Some(format!(
        "the root cause contradicts the claim: {} was {} in the {side}, {} was claimed.",
        finding.claim.label(),
        finding.claim.unit.text(reading),
        claim_bound(finding, bound)
    ))
}
