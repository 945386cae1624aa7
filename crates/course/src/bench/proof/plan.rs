//! The rounds of a proof, in order.

use statistics::{FIRST_LOOK, Side};

use crate::bench::rounds::Step;
use crate::measurement::chapter_file::{ChapterFile, Scenario};
use crate::measurement::claim::{PROBLEM, Role, SOLUTION};
use crate::measurement::record::Purpose;

/// Plans the rounds that are measured once, before the effect. They are for the law, for the plot of
/// connections, for counts that take rounds of their own, and for claims in other scenarios.
pub(super) fn beforehand<'a>(chapter: &'a ChapterFile, fix: &'a str) -> Vec<Step<'a>> {
    let effect = chapter.claims.effect().scenario();
    // What is compared with the problem, for what, where, and in how many pairs of rounds.
    let mut plan: Vec<(&str, Purpose, &str, u32)> = Vec::new();
    if let Some(scenario) = chapter.law.scenario() {
        // A law compares the problem with its probe, or takes the problem alone. The fix never predicts its
        // own gain.
        plan.push(match chapter.law.probe() {
            Some(probe) => (probe, Purpose::Law, scenario, FIRST_LOOK),
            None => (PROBLEM, Purpose::Law, scenario, 2),
        });
    }
    if let Some(scenario) = chapter.connections() {
        plan.push((fix, Purpose::Series, scenario, 1));
    }
    for claim in chapter.claims.of(Role::RootCause) {
        if !claim.features.is_empty() || claim.scenario() != effect {
            plan.push((fix, Purpose::RootCause, claim.scenario(), 1));
        }
    }
    for (scenario, pairs) in chapter.further_scenarios() {
        plan.push((fix, Purpose::Claim, scenario, pairs));
    }
    let mut steps = Vec::new();
    for (other, purpose, scenario, pairs) in plan {
        let variants = statistics::abba(PROBLEM, other, pairs);
        for (place, variant) in (0..).zip(variants) {
            steps.push(Step {
                purpose,
                variant,
                scenario,
                number: place / 2,
            });
        }
    }
    steps
}

/// Plans triplet `number` of the effect: problem, fix, and the fix again, in this order.
pub(super) fn triplet<'a>(
    chapter: &'a ChapterFile,
    fix: &'a str,
    number: u32,
    order: [Side; 3],
) -> [Step<'a>; 3] {
    let scenario = chapter.claims.effect().scenario();
    order.map(|side| {
        let (purpose, variant) = match side {
            Side::Base => (Purpose::Claim, PROBLEM),
            Side::Change => (Purpose::Claim, fix),
            Side::Again => (Purpose::Equal, fix),
        };
        Step {
            purpose,
            variant,
            scenario,
            number,
        }
    })
}

/// Returns the largest number of triplets: those that are judged, and half as many to replace triplets that are set
/// aside.
pub(super) fn most_triplets(chapter: &ChapterFile) -> u32 {
    chapter.rounds.pairs + chapter.rounds.pairs / 2
}

/// Returns the seconds of load until the verdict, without starts: for the first and for the last moment at
/// which it may be decided.
pub fn planned_s(chapter: &ChapterFile) -> (f64, f64) {
    let mut before = 0.0;
    for step in beforehand(chapter, SOLUTION) {
        before += chapter
            .scenario(step.scenario)
            .map_or(0.0, Scenario::whole_s);
    }
    let each = 3.0 * chapter.effect_scenario().whole_s();
    (
        before + f64::from(FIRST_LOOK) * each,
        before + f64::from(chapter.rounds.pairs) * each,
    )
}

/// Plans the rounds of the chapter's table: every scenario's variants forwards, then backwards, so that a
/// machine that slowly changes favours none. Before them come those for the plot of the queue.
pub(super) fn matrix_plan(chapter: &ChapterFile) -> Vec<Step<'_>> {
    let mut steps = Vec::new();
    if let Some(scenario) = chapter.queue() {
        for variant in [PROBLEM, SOLUTION] {
            steps.push(Step {
                purpose: Purpose::Series,
                variant,
                scenario,
                number: 0,
            });
        }
    }
    let Some(matrix) = &chapter.matrix else {
        return steps;
    };
    for scenario in &matrix.scenarios {
        let forwards = matrix.variants.iter().map(|variant| (variant, 0));
        let backwards = matrix.variants.iter().rev().map(|variant| (variant, 1));
        for (variant, number) in forwards.chain(backwards) {
            steps.push(Step {
                purpose: Purpose::Matrix,
                variant,
                scenario,
                number,
            });
        }
    }
    steps
}
