//! What makes a run say nothing about the claim, whatever its figures.

use crate::measurement::{
    chapter_file::{ChapterFile, Conditions, Scenario},
    claim::PROBLEM,
    record::{Compared, Purpose, Record, Round},
};
use engine::{
    environment::Environment,
    figures,
    outcome::{GeneratorFacts, Outcome},
    statistics::FIRST_LOOK,
};

use crate::analysis::{
    finding::Finding,
    prediction::{Inputs, Prediction, predicted},
};

/// The first cause against a run, in one sentence that names the round and the
/// remedy; `None` for a run that may be judged.
pub(crate) fn cause_against(
    record: &Record,
    findings: &[Finding],
    prediction: Option<&Prediction>,
    effect: &Finding,
) -> Option<String> {
    if !record.environment.optimised {
        return Some(unoptimised());
    }
    let claimed = effect.claim.ratio.map_or(0.0, |bound| bound.number);
    if claimed <= 1.0 {
        return Some(format!(
            "the chapter claims a gain of {} times, which is none; mend its chapter.toml.",
            figures::ratio(claimed)
        ));
    }
    let judged = || {
        record
            .rounds
            .iter()
            .enumerate()
            .filter(|(_, round)| round.is_judged())
            .map(|(index, round)| (format!("round {} ({})", index + 1, round.variant), round))
    };
    // Faults of the server before those of the instrument: a wrong answer
    // explains a strange figure better than the other way round.
    let causes: [fn(&Record, &Round) -> Option<String>; 5] = [
        |_, round| fault(&round.outcome),
        |record, round| strange_load(&record.chapter, round),
        |_, round| throttled(round.throttled_s, round.wall_s),
        |_, round| generator_bound(&round.outcome.generator),
        beyond_the_law,
    ];
    causes
        .iter()
        .find_map(|cause| judged().find_map(|(name, round)| Some((name, cause(record, round)?))))
        .map(|(name, cause)| format!("{name}: {cause}"))
        .or_else(|| too_few(record))
        .or_else(|| unpredicted(prediction))
        .or_else(|| findings.iter().find_map(unmeasured))
        .or_else(|| too_noisy(record, effect, claimed))
}

/// The sentence about a build that was not optimised.
pub(crate) fn unoptimised() -> String {
    "the servers were not optimised builds; build them without changing the profiles of Cargo.toml."
        .to_owned()
}

/// Wrong answers, errors, silence, or figures that contradict each other.
pub(crate) fn fault(outcome: &Outcome) -> Option<String> {
    if outcome.wrong_answers > 0 {
        let first = outcome.first_wrong_answer.as_deref().unwrap_or("");
        return Some(format!(
            "{}, the first was {first:?}; a server must be right before it is fast.",
            figures::things(outcome.wrong_answers, "wrong answer")
        ));
    }
    if let Some((cause, count)) = outcome.errors.iter().max_by_key(|(_, count)| **count)
        && *count > 0
    {
        let all = outcome.error_count();
        let others = match all - count {
            0 => String::new(),
            others => format!(" and {} otherwise", figures::count(others as f64)),
        };
        return Some(format!(
            "{} failed with `{cause}`{others}; a failed request spoils the comparison.",
            figures::things(*count, "request")
        ));
    }
    if let Some(bystander) = &outcome.bystander
        && let Some(count) = Some(bystander.wrong_answers + bystander.errors.values().sum::<u64>())
        && count > 0
    {
        let cause = bystander.errors.keys().next();
        return Some(format!(
            "{} beside the load failed ({}); bystanders must be answered, too.",
            figures::things(count, "request"),
            cause.map_or("a wrong answer", String::as_str)
        ));
    }
    if outcome.completed == 0 {
        return Some("nothing was answered, so no ratio can be formed.".to_owned());
    }
    // A rate may be measured from answer to answer, which is a gap between two
    // answers longer or shorter than the span.
    let completed = outcome.completed as f64;
    let agree =
        engine::outcome::belongs_to(outcome.requests_per_second, completed, outcome.seconds);
    if !agree || outcome.seconds <= 0.0 {
        return Some(format!(
            "{} in {} s are not {} a second; the record is damaged.",
            figures::things(outcome.completed, "answer"),
            figures::ratio(outcome.seconds),
            figures::ratio(outcome.requests_per_second)
        ));
    }
    None
}

/// A round under another load than the claim is about.
fn strange_load(chapter: &ChapterFile, round: &Round) -> Option<String> {
    let Some(scenario) = chapter.scenario(&round.scenario) else {
        return Some(format!(
            "its scenario `{}` is not one of this chapter's.",
            round.scenario
        ));
    };
    let expected = match round.purpose {
        Purpose::Equal => chapter.claims.effect().scenario(),
        Purpose::Claim | Purpose::RootCause => round.scenario.as_str(),
        _ => return None,
    };
    let users = round.outcome.generator.users;
    (round.scenario != expected || users != scenario.users).then(|| {
        format!(
            "it ran {} in the scenario `{}`, but the claim is about {} in `{expected}`.",
            figures::things(users.into(), "user"),
            round.scenario,
            figures::count(chapter.users(expected).into())
        )
    })
}

/// A quota that held the run back for more than a hundredth of its time.
pub(crate) fn throttled(throttled_s: Option<f64>, wall_s: f64) -> Option<String> {
    let share = throttled_s? / wall_s;
    (share.is_nan() || share > 0.01).then(|| {
        format!(
            "a CPU quota held the processes back for {} of the time; run where no quota applies.",
            figures::percent(share)
        )
    })
}

/// A generator that had nothing left to give.
pub(crate) fn generator_bound(generator: &GeneratorFacts) -> Option<String> {
    let share = generator.cpu_share?;
    (generator.is_bound() || share.is_nan()).then(|| {
        format!(
            "generator-bound: the generator used {} of its CPU time, so the figures describe it and not the server.",
            figures::percent(share)
        )
    })
}

/// More answers than the law allows: then something was not what it seemed.
fn beyond_the_law(record: &Record, round: &Round) -> Option<String> {
    let chapter = &record.chapter;
    let scenario = chapter.scenario(&round.scenario)?;
    let prediction = predicted(&chapter.law, scenario, Inputs::of(record))?;
    let bound = match round.variant.as_str() {
        PROBLEM => prediction.problem?,
        variant if variant == record.variant => prediction.solution?,
        _ => return None,
    };
    let measured = round.outcome.requests_per_second;
    (measured > bound * most_over_the_bound(chapter, scenario, &round.outcome)).then(|| {
        format!(
            "{} requests per second are more than the {} that {} allows; a call was skipped or a clock is wrong.",
            figures::count(measured.round()),
            figures::count(bound.round()),
            chapter.law.name()
        )
    })
}

/// 5 % for clocks, and one more answer of each user for the edges of the recorded span.
fn most_over_the_bound(chapter: &ChapterFile, scenario: &Scenario, outcome: &Outcome) -> f64 {
    let cycle = scenario.think_s + chapter.law.shortest_answer_ms().unwrap_or(0.0) / 1e3;
    1.05 + cycle / outcome.seconds
}

fn too_few(record: &Record) -> Option<String> {
    let chapter = &record.chapter;
    let effect = chapter.claims.effect();
    let compared = record.compared(&record.effect_rounds());
    let needed = FIRST_LOOK as usize;
    if compared.len() < needed {
        return Some(format!(
            "too few rounds: {} triplets were measured, {needed} are needed.",
            compared.len()
        ));
    }
    let has_figures = |together: &Option<Compared<'_>>| {
        let figures = together.as_ref().map(|one| one.figures(&effect.quantity));
        figures.flatten().is_some()
    };
    if let Some(index) = compared.iter().position(|together| !has_figures(together)) {
        return Some(format!(
            "triplet {} is not a problem and two fixes with a figure each.",
            index + 1
        ));
    }
    let mut further = chapter.further_scenarios().into_iter();
    let (missing, _) = further.find(|(name, _)| {
        let rounds = record.claimed_in(name);
        !rounds.iter().any(|round| round.variant == record.variant)
    })?;
    Some(format!(
        "too few rounds: none measured the fix in the scenario `{missing}`."
    ))
}

/// A law that cannot say anything of what was measured for it.
fn unpredicted(prediction: Option<&Prediction>) -> Option<String> {
    prediction.is_none().then(|| {
        "the rounds for the law fit no prediction, as if the machine had changed its pace between them; \
         run it again when the machine has less to do."
            .to_owned()
    })
}

/// A claim of which a round told nothing.
fn unmeasured(finding: &Finding) -> Option<String> {
    let claim = &finding.claim;
    if !finding.is_unmeasured() {
        return None;
    }
    let silent = if claim.problem.is_some() && finding.problem.is_none() {
        "problem"
    } else {
        "fix"
    };
    Some(format!(
        "the {silent} did not report `{}` in every round, so that `{}` is unknown.",
        claim.quantity.key(),
        claim.label(),
    ))
}

/// Noise that could by itself look like the claimed gain. A machine that lacks what the gain takes is
/// not asked for any.
fn too_noisy(record: &Record, effect: &Finding, claimed: f64) -> Option<String> {
    let Some(floor) = effect.noise_floor else {
        return Some(
            "no pair of equal servers was measured, so the noise floor is unknown.".to_owned(),
        );
    };
    let lacks = lack(&record.chapter.conditions, &record.environment);
    (1.0 + floor >= claimed && lacks.is_none()).then(|| {
        format!(
            "too noisy: equal servers differ by {}, which could pass for the claimed {} times; close other programs and repeat.",
            figures::percent(floor),
            figures::ratio(claimed)
        )
    })
}

/// What the machine lacks for the claims to show on it.
pub(crate) fn lack(conditions: &Conditions, environment: &Environment) -> Option<String> {
    let lacks = |what: &str, has: u32, needs: u32| {
        (has < needs).then(|| {
            format!("this machine cannot show it: the claim needs {needs} {what}, and here there is {has}; the root cause is shown instead.")
        })
    };
    lacks("CPUs", environment.cpus_usable, conditions.cpus_at_least).or_else(|| {
        lacks(
            "NUMA nodes",
            environment.numa_nodes,
            conditions.numa_nodes_at_least,
        )
    })
}
