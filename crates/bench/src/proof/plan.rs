//! The rounds of a proof, in order.

use analysis::statistics::{self, Side};
use measurement::chapter_file::{ChapterFile, Setting};
use measurement::claim::{PROBLEM, Point, SOLUTION};
use measurement::profile::ProfileKind;
use measurement::record::Purpose;

/// One round to come.
pub(super) struct Step<'a> {
    pub(super) purpose: Purpose,
    pub(super) variant: &'a str,
    pub(super) setting: &'a str,
}

/// Problem and solution in turn.
pub(super) fn in_turn(pairs: u32) -> impl Iterator<Item = &'static str> {
    statistics::abba(pairs).map(|side| match side {
        Side::Problem => PROBLEM,
        Side::Solution => SOLUTION,
    })
}

/// The rounds of a whole proof, in order.
pub(super) fn plan(chapter: &ChapterFile) -> Vec<Step<'_>> {
    let effect = chapter.effect.setting.as_str();
    let step = |purpose, setting| {
        move |variant| Step {
            purpose,
            variant,
            setting,
        }
    };
    let equal = std::iter::repeat_n(SOLUTION, 2 * chapter.rounds.equal_pairs as usize);
    let mut steps: Vec<Step<'_>> = equal.map(step(Purpose::Equal, effect)).collect();
    steps.extend(in_turn(chapter.rounds.pairs).map(step(Purpose::Effect, effect)));
    if let Some(setting) = chapter.law.setting() {
        steps.extend(in_turn(2).map(step(Purpose::Law, setting)));
    }
    if let Some(series) = &chapter.series {
        steps.extend(in_turn(1).map(step(Purpose::Series, &series.setting)));
    }
    if let Some(setting) = &chapter.mechanism.setting {
        steps.extend(in_turn(1).map(step(Purpose::Mechanism, setting)));
    }
    for point in &chapter.points {
        steps.extend(in_turn(Point::PAIRS).map(step(Purpose::Point, &point.setting)));
    }
    if let Some(bound) = &chapter.bound {
        steps.extend(in_turn(1).map(step(Purpose::Bound, bound.setting.as_str())));
    }
    steps
}

/// Seconds of load that a whole proof takes, without starts and drawing.
pub fn planned_s(chapter: &ChapterFile) -> f64 {
    let of = |name: &str, seconds: fn(&Setting) -> f64| chapter.setting(name).map_or(0.0, seconds);
    let rounds: f64 = plan(chapter)
        .iter()
        .map(|step| of(step.setting, Setting::whole_s))
        .sum();
    let profile = |kind| of(chapter.profile_setting(kind), |setting| setting.warm_up_s);
    let profiles = profile(ProfileKind::Cpu)
        + chapter.rounds.cpu_profile_s
        + profile(ProfileKind::Await)
        + chapter.rounds.await_profile_s;
    rounds + 2.0 * profiles
}

/// The rounds of the chapter's table: every setting's variants forwards, then backwards, so that
/// a machine that slowly changes favours none.
pub(super) fn matrix_plan(chapter: &ChapterFile) -> Vec<Step<'_>> {
    let Some(matrix) = &chapter.matrix else {
        return Vec::new();
    };
    let step = |variant, setting| Step {
        purpose: Purpose::Matrix,
        variant,
        setting,
    };
    let mut steps = Vec::new();
    for setting in &matrix.settings {
        let forwards = matrix.variants.iter();
        let there_and_back = forwards.clone().chain(forwards.rev());
        steps.extend(there_and_back.map(|variant| step(variant.as_str(), setting.as_str())));
    }
    steps
}

/// What a round is, for people.
pub(super) fn label(step: &Step<'_>) -> String {
    match step.purpose {
        Purpose::Equal => format!("{} against itself", step.variant),
        Purpose::Effect | Purpose::Agreement => step.variant.to_owned(),
        Purpose::Law => format!("{}, for the law", step.variant),
        Purpose::Mechanism => format!("{}, counted", step.variant),
        Purpose::Bound
        | Purpose::Point
        | Purpose::Matrix
        | Purpose::Series
        | Purpose::Yardstick => {
            format!("{}, {} setting", step.variant, step.setting)
        }
    }
}
