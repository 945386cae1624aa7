//! The rounds of a proof, in order.

use analysis::statistics::{self, Side};
use measurement::chapter_file::{ChapterFile, Scenario};
use measurement::claim::{PROBLEM, Role, SOLUTION};
use measurement::profile::ProfileKind;
use measurement::record::Purpose;

/// One round to come.
pub(super) struct Step<'a> {
    pub(super) purpose: Purpose,
    pub(super) variant: &'a str,
    pub(super) scenario: &'a str,
}

/// Problem and fix in turn.
pub(super) fn in_turn(fix: &str, pairs: u32) -> impl Iterator<Item = &str> {
    statistics::abba(pairs).map(move |side| match side {
        Side::Problem => PROBLEM,
        Side::Solution => fix,
    })
}

/// The rounds of a whole proof, in order.
pub(super) fn plan<'a>(chapter: &'a ChapterFile, fix: &'a str) -> Vec<Step<'a>> {
    let effect = chapter.claims.effect().scenario();
    let step = |purpose, scenario| {
        move |variant| Step {
            purpose,
            variant,
            scenario,
        }
    };
    let equal = std::iter::repeat_n(fix, 2 * chapter.rounds.equal_pairs as usize);
    let mut steps: Vec<Step<'_>> = equal.map(step(Purpose::Equal, effect)).collect();
    steps.extend(in_turn(fix, chapter.rounds.pairs).map(step(Purpose::Claim, effect)));
    if let Some(scenario) = chapter.law.scenario() {
        steps.extend(in_turn(fix, 2).map(step(Purpose::Law, scenario)));
    }
    if let Some(scenario) = &chapter.series {
        steps.extend(in_turn(fix, 1).map(step(Purpose::Series, scenario)));
    }
    for claim in chapter.claims.of(Role::RootCause) {
        if !claim.features.is_empty() || claim.scenario() != effect {
            steps.extend(in_turn(fix, 1).map(step(Purpose::RootCause, claim.scenario())));
        }
    }
    for (scenario, pairs) in chapter.further_scenarios() {
        steps.extend(in_turn(fix, pairs).map(step(Purpose::Claim, scenario)));
    }
    steps
}

/// Seconds of load that a whole proof takes, without starts and drawing.
pub fn planned_s(chapter: &ChapterFile) -> f64 {
    let of =
        |name: &str, seconds: fn(&Scenario) -> f64| chapter.scenario(name).map_or(0.0, seconds);
    let rounds: f64 = plan(chapter, SOLUTION)
        .iter()
        .map(|step| of(step.scenario, Scenario::whole_s))
        .sum();
    let profile = |kind| {
        of(chapter.profile_scenario(kind), |scenario| {
            scenario.warm_up_s
        })
    };
    let profiles = profile(ProfileKind::Cpu)
        + chapter.rounds.cpu_profile_s
        + profile(ProfileKind::Await)
        + chapter.rounds.await_profile_s;
    rounds + 2.0 * profiles
}

/// The rounds of the chapter's table: every scenario's variants forwards, then backwards, so that
/// a machine that slowly changes favours none.
pub(super) fn matrix_plan(chapter: &ChapterFile) -> Vec<Step<'_>> {
    let Some(matrix) = &chapter.matrix else {
        return Vec::new();
    };
    let step = |variant, scenario| Step {
        purpose: Purpose::Matrix,
        variant,
        scenario,
    };
    let mut steps = Vec::new();
    for scenario in &matrix.scenarios {
        let forwards = matrix.variants.iter();
        let there_and_back = forwards.clone().chain(forwards.rev());
        steps.extend(there_and_back.map(|variant| step(variant.as_str(), scenario.as_str())));
    }
    steps
}

/// What a round is, for people.
pub(super) fn label(step: &Step<'_>) -> String {
    match step.purpose {
        Purpose::Equal => format!("{} against itself", step.variant),
        Purpose::Agreement => step.variant.to_owned(),
        Purpose::Law => format!("{}, for the law", step.variant),
        Purpose::RootCause => format!("{}, counted", step.variant),
        Purpose::Claim | Purpose::Matrix | Purpose::Series | Purpose::Baseline => {
            format!("{}, {} scenario", step.variant, step.scenario)
        }
    }
}
