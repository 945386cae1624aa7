//! The learner's edit: passed or not, with the reason in a sentence.

mod evasion;

use measurement::attempt::{Attempt, Observed, Trial};
use serde::{Deserialize, Serialize};

use crate::{
    price,
    verdict::{fault, generator_bound, limit_in_words, throttled, unoptimised},
};
use measurement::{chapter_file::ChapterFile, figures, outcome::Outcome};

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GradeKind {
    /// The fault is gone.
    Passed,
    /// It is not, or there is a new one.
    Failed,
    /// The run says nothing about the edit.
    Invalid,
}

/// The result of a check with its reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grade {
    /// The result.
    pub kind: GradeKind,
    /// Why, in one sentence.
    pub reason: String,
    /// Words of the compiler or the server that belong to it, several lines perhaps.
    pub detail: Option<String>,
}

/// Grades an attempt by the chapter's `[check]`.
///
/// What the edit did wrong beyond doubt comes first, then what makes the run
/// say nothing, then what was measured and falls short.
pub fn grade(chapter: &ChapterFile, attempt: &Attempt) -> Grade {
    match attempt {
        Attempt::DoesNotCompile { compiler } => Grade::failed(
            "the exercise does not compile; the compiler says why.",
            Some(compiler.clone()),
        ),
        Attempt::DoesNotStart { words } if words.trim().is_empty() => Grade::failed(
            "the exercise did not begin to listen; something may wait for ever before it does.",
            None,
        ),
        Attempt::DoesNotStart { words } => Grade::failed(
            "the exercise ended before it listened; its last words say why.",
            Some(words.clone()),
        ),
        Attempt::Ran(trial) => grade_trial(chapter, trial),
    }
}

fn grade_trial(chapter: &ChapterFile, trial: &Trial) -> Grade {
    let exercise = &trial.exercise;
    if let Some(panic) = exercise.panics.first() {
        return Grade::failed("the exercise panics under load.", Some(panic.clone()));
    }
    if exercise.ended {
        return Grade::failed("the exercise ended while it was under load.", None);
    }
    if let Some(reason) = misbehaviour(&exercise.outcome) {
        return Grade::failed(reason, None);
    }
    if let Some(reason) = cause_against(chapter, trial) {
        return Grade {
            kind: GradeKind::Invalid,
            reason,
            detail: None,
        };
    }
    if let Some(reason) = evasion::found(chapter, trial) {
        return Grade::failed(reason, None);
    }
    measured(chapter, trial)
}

impl Grade {
    fn failed(reason: impl Into<String>, detail: Option<String>) -> Self {
        Self {
            kind: GradeKind::Failed,
            reason: reason.into(),
            detail,
        }
    }

    /// Whether the fault is gone.
    pub fn passed(&self) -> bool {
        self.kind == GradeKind::Passed
    }
}

fn misbehaviour(outcome: &Outcome) -> Option<String> {
    if outcome.wrong_answers == 0 && outcome.error_count() == 0 && outcome.completed == 0 {
        return Some(format!(
            "the exercise answered nothing in {} s; it may wait for a lock that it holds itself.",
            figures::ratio(outcome.seconds)
        ));
    }
    fault(outcome).map(|cause| format!("the exercise: {cause}"))
}

/// Why the run says nothing about the edit.
fn cause_against(chapter: &ChapterFile, trial: &Trial) -> Option<String> {
    if !trial.optimised {
        return Some(unoptimised());
    }
    let sides = [("exercise", &trial.exercise), ("problem", &trial.problem)];
    fault(&trial.problem.outcome)
        .map(|cause| ("problem", cause))
        .or_else(|| {
            sides.into_iter().find_map(|(name, side)| {
                throttled(side.throttled_s, side.outcome.seconds)
                    .or_else(|| generator_bound(&side.outcome.generator))
                    .or_else(|| strange_load(chapter, side))
                    .map(|cause| (name, cause))
            })
        })
        .map(|(name, cause)| format!("the {name}: {cause}"))
        .or_else(|| faultless(chapter, &trial.problem))
}

/// A machine on which the problem does as well as the solution should.
fn faultless(chapter: &ChapterFile, problem: &Observed) -> Option<String> {
    let claim = &chapter.mechanism;
    let reading = problem.mechanism?;
    (chapter.law.depends_on_the_machine() && claim.solution.holds(reading, users(chapter))).then(
        || {
            format!(
                "this machine cannot show the fault: {} is {} in the problem as well.",
                claim.name,
                figures::count(reading)
            )
        },
    )
}

/// Users in the setting of the check.
fn users(chapter: &ChapterFile) -> u32 {
    chapter
        .setting(&chapter.check.setting)
        .unwrap_or(&chapter.load)
        .users
}

fn strange_load(chapter: &ChapterFile, side: &Observed) -> Option<String> {
    let users_seen = side.outcome.generator.users;
    (users_seen != users(chapter)).then(|| {
        format!(
            "{users_seen} users ran, but the check asks for {}.",
            users(chapter)
        )
    })
}

/// A generator that waited for its processor for more than half of the time is late with everything
/// that it sends and times.
fn starved(outcome: &Outcome) -> Option<String> {
    let waited = outcome.generator.waited_share?;
    (waited > 0.5).then(|| {
        format!(
            "the generator waited for its processor for {} of the time, so what it timed may be its own \
             lateness; close other programs and repeat.",
            figures::percent(waited)
        )
    })
}

/// The first of the check's other limits that the exercise does not keep to, or is silent about.
fn excess(chapter: &ChapterFile, exercise: &Observed) -> Option<Grade> {
    chapter.check.limits.iter().find_map(|limit| {
        let Some(reading) = exercise.limited.get(&limit.metric) else {
            if limit.where_told {
                return None;
            }
            return Some(Grade {
                kind: GradeKind::Invalid,
                reason: format!("the exercise's server did not report `{}`.", limit.metric),
                detail: None,
            });
        };
        // What is not a number keeps to nothing.
        let keeps = *reading <= limit.at_most;
        (!keeps).then(|| {
            Grade::failed(
                format!(
                    "{}: {}, but at most {} is needed.",
                    limit.name,
                    figures::count(*reading),
                    figures::count(limit.at_most)
                ),
                None,
            )
        })
    })
}

/// Mechanism, other limits, then effect.
fn measured(chapter: &ChapterFile, trial: &Trial) -> Grade {
    let claim = &chapter.mechanism;
    let users = if claim.setting.is_some() {
        chapter.mechanism_users()
    } else {
        users(chapter)
    };
    let Some(reading) = trial.exercise.mechanism.filter(|reading| !reading.is_nan()) else {
        return Grade {
            kind: GradeKind::Invalid,
            reason: format!("the exercise's server did not report `{}`.", claim.metric),
            detail: None,
        };
    };
    let limit = limit_in_words(claim.solution, users);
    let reading_text = figures::count(reading);
    if !claim.solution.holds(reading, users) {
        return Grade::failed(
            format!("{}: {reading_text}, but {limit} is needed.", claim.name),
            None,
        );
    }
    if let Some(excess) = excess(chapter, &trial.exercise) {
        return excess;
    }
    if let Some(reason) = price::too_dear(chapter, &trial.problem.outcome, &trial.exercise.outcome)
    {
        return Grade::failed(reason, None);
    }
    let metric = chapter.effect.metric;
    let Some(ratio) = metric.ratio(&trial.problem.outcome, &trial.exercise.outcome) else {
        return Grade {
            kind: GradeKind::Invalid,
            reason: format!("the run gave no figure for {}.", metric.label()),
            detail: None,
        };
    };
    if let Some(most) = chapter.check.at_most.filter(|most| ratio > *most) {
        return Grade::failed(
            format!(
                "{}: {}, where no honest cure can give more than {} times; do all the work for every \
                 request: every round of it, and no answer kept from another request.",
                metric.label(),
                figures::gain(ratio),
                figures::ratio(most)
            ),
            None,
        );
    }
    let needed = chapter.check.at_least;
    let is_enough = ratio >= needed;
    if !is_enough && let Some(reason) = starved(&trial.exercise.outcome) {
        // What it fell short by may be the generator's.
        return Grade {
            kind: GradeKind::Invalid,
            reason,
            detail: None,
        };
    }
    if !is_enough {
        return Grade::failed(
            format!(
                "{}: {}, but {}; {}: {reading_text}, as it should be.",
                metric.label(),
                figures::gain(ratio),
                needed_in_words(needed),
                claim.name
            ),
            None,
        );
    }
    Grade {
        kind: GradeKind::Passed,
        reason: format!(
            "{}: {} ({}); {}: {reading_text} ({limit} is needed).",
            metric.label(),
            figures::gain(ratio),
            needed_in_words(needed),
            claim.name
        ),
        detail: None,
    }
}

/// What the ratio must reach: a gain, or in a chapter whose gain few machines can show, no great loss.
fn needed_in_words(needed: f64) -> String {
    if needed > 1.0 {
        format!("{} times are needed", figures::ratio(needed))
    } else {
        format!(
            "at least {} of the problem's are needed",
            figures::percent(needed)
        )
    }
}
