//! The learner's edit: passed or not, with the reason in a sentence.

mod contract;

use crate::measurement::{
    attempt::{Attempt, Observed, Trial},
    chapter_file::ChapterFile,
    claim::{Bound, Claim, Direction, Of, Role},
    law::Law,
    record::{Compared, Round},
};
use engine::outcome::Outcome;
use serde::{Deserialize, Serialize};
use statistics::Looks;
use statistics::figures;
use std::fmt::Write as _;

pub use self::contract::Contract;
use self::contract::{Broken, Late};
use crate::analysis::{
    finding::Finding,
    machine::Machine,
    measured::Measured,
    validity::{fault, throttled, unoptimised},
    verdict::{capitalised, claim_bound},
};

/// Smallest ratio that is not a loss. The distance to 1 allows for the noise of one round.
const NO_WORSE: f64 = 0.8;

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GradeKind {
    /// The fault is gone.
    Passed,
    /// The fault is still there, or a new one.
    Failed,
    /// The run says nothing about the edit.
    Invalid,
}

/// Evidence on an edit, as a check gathers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// Whether the edit's server comes to listen.
    Start,
    /// The contract tests of every variant.
    Contract,
    /// Rounds of problem and edit under the check's load.
    Load,
    /// The same rounds, the other way round.
    LoadAgain,
    /// The contract tests that only a fix can pass.
    TestsOfAFix,
}

/// The result of a check with its reason.
#[derive(Debug, Clone, PartialEq)]
pub struct Grade {
    /// The result.
    pub kind: GradeKind,
    /// Reason in one sentence.
    pub reason: String,
    /// Output of the compiler or the server that belongs to the reason, perhaps in several lines.
    pub detail: Option<String>,
    /// Parts of the contract that the exercise kept and broke.
    pub contract: Contract,
    /// Name in words of the contract test that is the reason; `None` if the reason is another.
    pub failed_test: Option<String>,
    /// The claims that were judged, with their figures; empty if it did not run.
    pub findings: Vec<Finding>,
    /// `true` if it failed by a comparison of speeds alone, which a busy machine can disturb.
    pub by_speed: bool,
}

/// Grades an attempt.
///
/// A certain fault of the edit decides first, then a cause that makes the run invalid. Then come the root
/// cause, the guardrails, and last the comparison of speed with the problem.
pub fn grade(chapter: &ChapterFile, attempt: &Attempt) -> Grade {
    let trial = match attempt {
        Attempt::DoesNotListen { said, wait } => {
            let reason =
                "the exercise did not begin to listen; something may wait for ever before it does.";
            let detail = if said.trim().is_empty() {
                None
            } else {
                Some(said.clone())
            };
            let late = Late::of(*wait, "its first 30 s");
            return Grade::unstarted(Contract::LISTENS, reason, detail, Some(late));
        }
        Attempt::EndsAtOnce { status, stderr } => {
            let (why, detail) = if stderr.trim().is_empty() {
                let nothing = "it printed nothing, so it may return or exit before it serves";
                (nothing, None)
            } else {
                ("the end of its stderr says why", Some(stderr.clone()))
            };
            let reason = format!("the exercise ended before it listened ({status}); {why}.");
            return Grade::unstarted(Contract::LISTENS, &reason, detail, None);
        }
        Attempt::Tested { tests } => {
            let (contract, broken) = Contract::tested(tests);
            return Grade::broken(contract, broken);
        }
        Attempt::Ran(trial) => trial,
    };
    let (contract, broken) = Contract::of(trial);
    let mut grade = Grade {
        kind: GradeKind::Failed,
        reason: String::new(),
        detail: None,
        contract,
        failed_test: None,
        findings: findings(chapter, trial),
        by_speed: false,
    };
    let late = match broken {
        Some(broken) if broken.excuse().is_none() => {
            (grade.reason, grade.detail) = (broken.reason, broken.detail);
            return grade;
        }
        Some(late) => Some(late),
        None => Broken::late_problem(trial),
    };
    if let Some(cause) = cause_against(chapter, trial) {
        (grade.kind, grade.reason) = (GradeKind::Invalid, cause);
    } else {
        grade.judge(chapter, trial, late);
    }
    grade
}

/// Judges the claims of a check. The effect is the chapter's, with a bound that every honest fix meets.
fn findings(chapter: &ChapterFile, trial: &Trial) -> Vec<Finding> {
    let effect = chapter.claims.effect();
    let both = [&trial.problem.round, &trial.exercise.round];
    let pair = [Some(Compared {
        problem: both[0],
        fixes: vec![both[1]],
    })];
    let no_worse = Claim {
        ratio: Some(Bound::at_least(chapter.check.effect_at_least)),
        ..effect.clone()
    };
    let mut claims = Vec::new();
    for claim in chapter.claims.iter() {
        if claim.is_checked() && matches!(claim.role, Role::RootCause | Role::Guardrail) {
            claims.push(claim);
        }
    }
    claims.push(&no_worse);
    let mut findings = Vec::new();
    for claim in claims {
        let mut own: Vec<&Round> = trial.counted.iter().collect();
        own.retain(|round| claim.role == Role::RootCause && round.scenario == claim.scenario());
        let (rounds, scenario): (&[_], _) = if own.is_empty() {
            (&both, chapter.check.scenario.as_str())
        } else {
            (&own, claim.scenario())
        };
        let measured = Measured {
            rounds,
            compared: &pair,
            variant: &trial.exercise.round.variant,
            users: chapter.users(scenario),
            looks: Looks::ONCE,
        };
        let claim = Claim {
            scenario: Some(scenario.to_owned()),
            // The problem's bound is not part of the grade: the chapter's own proof covers it.
            problem: None,
            ..claim.clone()
        };
        findings.push(Finding::of(&claim, &measured));
    }
    findings
}

impl Grade {
    /// Makes the grade of an edit that does not compile.
    pub fn uncompiled(compiler: String) -> Self {
        let reason = "the exercise does not compile; the compiler says why.";
        Self::unstarted(Contract::COMPILES, reason, Some(compiler), None)
    }

    fn unstarted(part: &str, reason: &str, detail: Option<String>, late: Option<Late>) -> Self {
        let reason = reason.to_owned();
        let broken = Broken {
            reason,
            detail,
            test: None,
            late,
        };
        Self::broken(Contract::broken_at(part), Some(broken))
    }

    /// Makes the grade of an edit that was not put under load.
    fn broken(contract: Contract, broken: Option<Broken>) -> Self {
        let mut grade = Self {
            kind: GradeKind::Failed,
            reason: String::new(),
            detail: None,
            contract,
            failed_test: None,
            findings: Vec::new(),
            by_speed: false,
        };
        if let Some(broken) = broken {
            grade.excuse_or_blame(broken);
        }
        grade
    }

    /// Takes a broken part of the contract as the reason: the machine's fault if it may be to blame, or else the edit's.
    fn excuse_or_blame(&mut self, broken: Broken) {
        if let Some(machine) = broken.excuse() {
            self.kind = GradeKind::Invalid;
            self.reason = blamed(machine, &broken.reason);
            self.contract.broken.clear();
        } else {
            self.reason = broken.reason;
            self.failed_test = broken.test;
        }
        self.detail = broken.detail;
    }

    /// Returns whether the fault is gone.
    pub fn passed(&self) -> bool {
        self.kind == GradeKind::Passed
    }

    /// Returns the evidence that is wanted after `last`; `None` if the grade stands.
    pub fn wants_after(&self, last: Evidence) -> Option<Evidence> {
        match last {
            Evidence::Start if self.kind == GradeKind::Invalid => None,
            Evidence::Start if self.contract.broken.is_empty() => Some(Evidence::Contract),
            // Where the machine may be to blame for a test, counts under load decide.
            Evidence::Contract if self.kind == GradeKind::Invalid => Some(Evidence::Load),
            Evidence::Contract if self.contract.broken.is_empty() => Some(Evidence::Load),
            // A machine that slowly changes does not decide.
            Evidence::Load if self.by_speed => Some(Evidence::LoadAgain),
            Evidence::Load | Evidence::LoadAgain if self.passed() => Some(Evidence::TestsOfAFix),
            _ => None,
        }
    }

    /// Formats the root causes in a line each: the reading, the problem's, and the limit. Empty for an
    /// exercise that did not run.
    pub fn root_causes(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for finding in &self.findings {
            if finding.claim.role == Role::RootCause && !finding.is_unmeasured() {
                lines.push(standing(finding));
            }
        }
        lines
    }

    /// Formats the effect in a line; `None` for an exercise that did not run.
    pub fn effect(&self) -> Option<String> {
        let mut findings = self.findings.iter();
        let effect = findings.find(|finding| finding.claim.role == Role::Effect)?;
        effect.ratio?;
        Some(gain(effect))
    }

    /// Judges root causes, guardrails and effect. The first that does not hold is the reason. `late` is what did not come
    /// in time on a machine that may be to blame.
    fn judge(&mut self, chapter: &ChapterFile, trial: &Trial, late: Option<Broken>) {
        let mut ordered = Vec::new();
        for role in [Role::RootCause, Role::Guardrail, Role::Effect] {
            for finding in &self.findings {
                if finding.claim.role == role {
                    ordered.push(finding);
                }
            }
        }
        // What lacks a figure because it is late may have counts that tell more.
        if late.is_none()
            && let Some(silent) = ordered.iter().find(|finding| finding.is_unmeasured())
        {
            let key = silent.claim.quantity.key();
            self.kind = GradeKind::Invalid;
            self.reason = format!("the exercise's server did not report `{key}`.");
            return;
        }
        let [root_cause, effect] = [Role::RootCause, Role::Effect].map(|role| {
            let mut findings = ordered.iter().copied();
            findings.find(|finding| finding.claim.role == role)
        });
        let mut missed = ordered;
        missed.retain(|finding| finding.holds == Some(false) && !finding.is_unmeasured());
        let missed_count = missed.iter().find(|finding| {
            let is_count = finding.claim.ratio.is_none() && finding.claim.quantity.is_counted();
            is_count && !(late.is_some() && (finding.lacks() || finding.may_lack_time()))
        });
        let mut elsewhere = None;
        for test in &trial.tests {
            if let Some(failure) = &test.failure
                && test.of_a_fix
            {
                elsewhere = Some((&test.name, failure));
                break;
            }
        }
        let machine = machine(trial);
        // Counts come first: a busy machine changes times and their ratios, but of the counts only those of users let
        // in at once and of answers in time.
        let (kind, reason, by_speed) = if let Some(finding) = missed_count {
            let reason = missed_bound(chapter, finding, effect);
            if machine.was_busy() && finding.may_lack_time() {
                (GradeKind::Invalid, blamed(&machine, &reason), false)
            } else {
                (GradeKind::Failed, reason, false)
            }
        } else if let Some(late) = late {
            self.excuse_or_blame(late);
            return;
        } else if let Some((name, failure)) = elsewhere {
            let sentence = &failure.sentence;
            self.failed_test = Some(name.clone());
            let reason =
                format!("the check's load finds no fault, but a test does: {name}: {sentence}.");
            self.detail.clone_from(&failure.panic);
            let late = Late::of_test(failure);
            match late.as_ref().and_then(Late::excuse) {
                Some(machine) => (GradeKind::Invalid, blamed(machine, &reason), false),
                None => (GradeKind::Failed, reason, false),
            }
        } else if let Some(finding) = missed.first() {
            let short = match finding.claim.ratio {
                Some(_) => short(finding, root_cause),
                None => missed_bound(chapter, finding, effect),
            };
            if machine.was_busy() {
                (GradeKind::Invalid, blamed(&machine, &short), false)
            } else {
                (GradeKind::Failed, short, true)
            }
        } else {
            let reason = passed(chapter, root_cause, effect);
            (GradeKind::Passed, reason, false)
        };
        (self.kind, self.reason, self.by_speed) = (kind, reason, by_speed);
    }
}

/// Finds the cause that makes the run say nothing about the edit.
fn cause_against(chapter: &ChapterFile, trial: &Trial) -> Option<String> {
    if !trial.optimised {
        return Some(unoptimised());
    }
    if Broken::late_problem(trial).is_none()
        && let Some(cause) = fault(&trial.problem.round.outcome)
    {
        return Some(format!("the problem: {cause}"));
    }
    for (name, side) in [("exercise", &trial.exercise), ("problem", &trial.problem)] {
        let Observed { round, .. } = side;
        if let Some(cause) = throttled(round.throttled_s, round.outcome.seconds) {
            return Some(format!("the {name}: {cause}"));
        }
        if let Some(cause) = strange_load(chapter, &round.outcome) {
            return Some(format!("the {name}: {cause}"));
        }
    }
    faultless(chapter, trial)
}

/// Finds a machine on which the problem does as well as the solution should.
fn faultless(chapter: &ChapterFile, trial: &Trial) -> Option<String> {
    let claim = chapter.claims.root_cause();
    let reading = trial.problem.round.value(&claim.quantity)?;
    let users = chapter.users(&chapter.check.scenario);
    if !chapter.law.depends_on_the_machine() || !claim.solution?.holds(reading, users) {
        return None;
    }
    Some(format!(
        "this machine cannot show the fault: {} is {} in the problem as well.",
        claim.label(),
        figures::count(reading)
    ))
}

fn strange_load(chapter: &ChapterFile, outcome: &Outcome) -> Option<String> {
    let users = chapter.users(&chapter.check.scenario);
    let users_seen = outcome.generator.users;
    if users_seen == users {
        return None;
    }
    Some(format!(
        "{users_seen} users ran, but the check asks for {users}."
    ))
}

/// Reads from both rounds how busy the machine was.
fn machine(trial: &Trial) -> Machine {
    let sides = [
        ("the exercise's round", &trial.exercise.round),
        ("the problem's round", &trial.problem.round),
    ];
    let named = sides.map(|(name, round)| (name.to_owned(), round));
    Machine::during(named.into_iter())
}

/// Formats the sentence about a machine that was too busy to tell, with the figures that were measured.
fn blamed(machine: &Machine, seen: &str) -> String {
    let blame = machine.blame().unwrap_or_default();
    let busy = if machine.is_shared() {
        "the machine is busy, so this is not decided"
    } else {
        "not decided"
    };
    format!("{busy}: {blame}. {}. Seen: {seen}", machine.remedy())
}

/// Formats the fix's reading with its label.
fn reading(finding: &Finding) -> String {
    let reading = finding.claim.unit.text(finding.fix.unwrap_or(f64::NAN));
    format!("{}: {reading}", finding.claim.label())
}

/// Formats the limit of the fix's reading, such as `at most 50 are allowed`; `note` follows the number.
fn limit(finding: &Finding, note: &str) -> String {
    let Some(bound) = finding.claim.solution else {
        return String::new();
    };
    let text = claim_bound(finding, bound);
    let is_one = figures::count(bound.limit(finding.users)) == "1";
    let verb = if is_one || !finding.claim.unit.is_count() {
        "is"
    } else {
        "are"
    };
    match bound.direction {
        Direction::AtMost => format!("{text}{note} {verb} allowed"),
        Direction::AtLeast => format!("{text}{note} {verb} needed"),
    }
}

/// Formats the fix's reading, the problem's, and the limit.
fn standing(finding: &Finding) -> String {
    let unit = finding.claim.unit;
    let from = match (finding.fix, finding.problem) {
        (Some(fix), Some(problem)) if unit.text(fix) == unit.text(problem) => {
            ", as in the problem".to_owned()
        }
        (Some(_), Some(problem)) => format!("; the problem has {}", unit.text(problem)),
        _ => String::new(),
    };
    let share = match finding.claim.solution {
        Some(bound) if bound.of == Of::Users => {
            let share = figures::percent(bound.number);
            format!(" ({share} of the {} users)", finding.users)
        }
        _ => String::new(),
    };
    let limit = capitalised(&limit(finding, &share));
    format!("{}{from}. {limit}", reading(finding))
}

/// Formats a reading that misses its bound, its meaning, and any loss of speed.
fn missed_bound(chapter: &ChapterFile, finding: &Finding, effect: Option<&Finding>) -> String {
    let mut text = standing(finding);
    if finding.claim.role == Role::RootCause
        && let Some(meaning) = &chapter.check.missed
    {
        let _ = write!(text, ". {}", capitalised(meaning));
    }
    if let Some(effect) = effect
        && is_below(effect, NO_WORSE)
    {
        let _ = write!(text, ". In this run it was {}", worse(effect));
    }
    text + "."
}

fn is_below(finding: &Finding, limit: f64) -> bool {
    finding.ratio.is_some_and(|ratio| ratio < limit)
}

/// Formats by how much an edit is worse than the problem, with both figures.
fn worse(effect: &Finding) -> String {
    let text = |figure: Option<f64>| figures::ratio(figure.unwrap_or(f64::NAN));
    format!(
        "worse than the problem: {}: {}, where the problem has {} ({})",
        effect.claim.label(),
        text(effect.fix),
        text(effect.problem),
        figures::gain(effect.ratio.unwrap_or(f64::NAN)),
    )
}

fn gain(finding: &Finding) -> String {
    let ratio = finding.ratio.unwrap_or(f64::NAN);
    format!("{}: {}", finding.claim.label(), figures::gain(ratio))
}

fn short(finding: &Finding, root_cause: Option<&Finding>) -> String {
    let needed = match finding.claim.ratio {
        Some(bound) => bound.number,
        None => f64::NAN,
    };
    let as_it_should_be = match root_cause {
        Some(root_cause) => format!("; {}, as it should be", reading(root_cause)),
        None => String::new(),
    };
    if needed < 1.0 {
        let (worse, least) = (worse(finding), figures::percent(needed));
        return format!("{worse}, but at least {least} of it is needed{as_it_should_be}.");
    }
    if is_below(finding, NO_WORSE) {
        return format!("{}{as_it_should_be}.", worse(finding));
    }
    format!(
        "hardly better than the problem: {}, where every fix gains at least {} times{as_it_should_be}. So requests \
         wait for something else.",
        gain(finding),
        figures::ratio(needed),
    )
}

fn passed(chapter: &ChapterFile, root_cause: Option<&Finding>, effect: Option<&Finding>) -> String {
    let mut text = String::new();
    if let Some(finding) = root_cause {
        let _ = write!(text, "{} ({})", reading(finding), limit(finding, ""));
    }
    text += "; ";
    if let Some(effect) = effect {
        text += &gain(effect);
    }
    if let Some(scenario) = chapter.scenario(&chapter.check.scenario) {
        let _ = write!(text, " with {}", scenario.in_words());
    }
    if let Some(effect) = effect
        && is_below(effect, 1.0)
        && matches!(chapter.law, Law::Workers { .. } | Law::Locality { .. })
    {
        text += "; on this machine the law promises no gain";
    }
    text + "."
}
