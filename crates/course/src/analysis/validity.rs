//! Causes for which a run says nothing about the claim, whatever its figures.

use crate::measurement::attempt::is_given_up;
use crate::measurement::{
    chapter_file::{ChapterFile, Conditions, Scenario},
    claim::{PROBLEM, Role},
    record::{Purpose, Record, Round},
};
use children::environment::Environment;
use engine::outcome::{GeneratorFacts, Outcome};
use statistics::FIRST_LOOK;
use statistics::figures;

use crate::analysis::{
    finding::Finding,
    machine,
    prediction::{Inputs, predicted},
};

/// Finds the first cause against a round of the run: a sentence that names the round and the remedy. `None` for
/// rounds that may be judged.
pub(crate) fn cause_against(record: &Record, effect: &Finding) -> Option<String> {
    if !record.environment.optimised {
        return Some(unoptimised());
    }
    let claimed = claimed(effect);
    if claimed <= 1.0 {
        return Some(format!(
            "the chapter claims a gain of {} times, which is none; mend its chapter.toml.",
            figures::ratio(claimed)
        ));
    }
    // Faults of the server come before those of the instrument: a wrong answer can explain a strange figure,
    // but not the other way round.
    let causes: [fn(&Record, &Round) -> Option<String>; 5] = [
        |_, round| fault(&round.outcome),
        |record, round| strange_load(&record.chapter, round),
        |_, round| throttled(round.throttled_s, round.wall_s),
        |_, round| damaged(&round.outcome.generator),
        beyond_the_law,
    ];
    for cause in causes {
        for (name, round) in judged(record) {
            if let Some(cause) = cause(record, round) {
                return Some(format!("{name}: {cause}"));
            }
        }
    }
    None
}

/// Finds a figure that the verdict needs and no round has.
pub(crate) fn missing(findings: &[Finding], effect: &Finding) -> Option<String> {
    if let Some(missing) = findings.iter().find_map(unmeasured) {
        return Some(missing);
    }
    if effect.noise_floor.is_none() {
        let none =
            "no pair of equal servers was measured, so the noise floor is unknown; run it again.";
        return Some(none.to_owned());
    }
    None
}

/// Returns the rounds that a verdict rests on, each with a name that a reader can find it by.
pub(crate) fn judged(record: &Record) -> impl Iterator<Item = (String, &Round)> {
    named(record, Round::is_judged)
}

/// Returns the rounds that the effects rest on, each with a name.
pub(crate) fn of_effects(record: &Record) -> impl Iterator<Item = (String, &Round)> {
    let claims = &record.chapter.claims;
    judged(record).filter(|(_, round)| {
        let mut effects = claims.of(Role::Effect);
        matches!(round.purpose, Purpose::Claim | Purpose::Equal)
            && effects.any(|effect| effect.scenario() == round.scenario)
    })
}

/// Returns the rounds that were set aside, each with a name.
pub(crate) fn set_aside(record: &Record) -> impl Iterator<Item = (String, &Round)> {
    named(record, |round| round.purpose == Purpose::Disturbed)
}

fn named(record: &Record, is_asked: fn(&Round) -> bool) -> impl Iterator<Item = (String, &Round)> {
    let mut rounds = Vec::new();
    // As the terminal counts: a round that was set aside has lost its number to a later one.
    let mut number = 0;
    for round in &record.rounds {
        let variant = &round.variant;
        let name = if round.purpose == Purpose::Disturbed {
            format!("a round of the {variant} that was set aside")
        } else {
            number += 1;
            format!("round {number} ({variant})")
        };
        if is_asked(round) {
            rounds.push((name, round));
        }
    }
    rounds.into_iter()
}

/// Returns the gain that the chapter claims.
fn claimed(effect: &Finding) -> f64 {
    match effect.claim.ratio {
        Some(bound) => bound.limit(effect.users),
        None => 0.0,
    }
}

/// Formats a clause about the first round in which a slow machine may be the cause of unanswered requests.
pub(crate) fn unanswered(record: &Record) -> Option<String> {
    judged(record).find_map(|(name, round)| Some(format!("{name}: {}", late(&round.outcome)?)))
}

/// Formats the signs of a slow machine: all failed requests timed out, or nothing was answered in the
/// recorded span.
fn late(outcome: &Outcome) -> Option<String> {
    let timed_out = outcome.errors.get(TIME_OUT).copied().unwrap_or(0);
    if timed_out > 0 && timed_out == outcome.error_count() {
        return Some(format!(
            "{} timed out.",
            figures::things(timed_out, "request")
        ));
    }
    if outcome.completed > 0 || outcome.error_count() > 0 {
        return None;
    }
    Some(format!(
        "nothing was answered in {} s.",
        figures::ratio(outcome.seconds)
    ))
}

/// Returns whether a slow machine may be the only cause of what is wrong with the answers: all failed requests timed out,
/// or were given up by the service, or there were none at all in the recorded span.
pub(crate) fn is_late(outcome: &Outcome) -> bool {
    let mut wrong = outcome.wrong_answers;
    let mut errors = vec![&outcome.errors];
    if let Some(bystander) = &outcome.bystander {
        wrong += bystander.wrong_answers;
        errors.push(&bystander.errors);
    }
    let (mut all, mut late) = (wrong, 0);
    for (cause, count) in errors.into_iter().flatten() {
        let status = cause.strip_prefix("status ").unwrap_or_default();
        all += count;
        if cause == TIME_OUT || is_given_up(status) {
            late += count;
        }
    }
    all == late && (late > 0 || outcome.completed == 0)
}

/// The generators' name for the error of a request without an answer in time.
const TIME_OUT: &str = "time_out";

/// Formats the sentence about a build that was not optimised.
pub(crate) fn unoptimised() -> String {
    "the servers were not optimised builds; build them without changing the profiles of Cargo.toml."
        .to_owned()
}

/// Finds wrong answers, errors, silence, or figures that contradict each other.
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
        let failed = if cause == TIME_OUT {
            "timed out".to_owned()
        } else {
            format!("failed with `{cause}`")
        };
        return Some(format!(
            "{} {failed}{others}; a failed request spoils the comparison.",
            figures::things(*count, "request")
        ));
    }
    if let Some(bystander) = &outcome.bystander
        && let Some(count) = Some(bystander.wrong_answers + bystander.errors.values().sum::<u64>())
        && count > 0
    {
        let cause = bystander.errors.keys().next();
        return Some(format!(
            "{} of bystanders failed ({}); bystanders must be answered, too.",
            figures::things(count, "request"),
            cause.map_or("a wrong answer", String::as_str)
        ));
    }
    if outcome.completed == 0 {
        return Some(
            "nothing was answered, so no ratio can be formed; look whether the service hangs, and run it again."
                .to_owned(),
        );
    }
    // A rate may be measured from answer to answer. That span is longer or shorter than the recorded one by a
    // gap between two answers.
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

/// Finds a round under another load than the claim is about.
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
    if round.scenario == expected && users == scenario.users {
        return None;
    }
    Some(format!(
        "it ran {} in the scenario `{}`, but the claim is about {} in `{expected}`.",
        figures::things(users.into(), "user"),
        round.scenario,
        figures::count(chapter.users(expected).into())
    ))
}

/// Finds a quota that held the run back for more than 1 % of its time.
pub(crate) fn throttled(throttled_s: Option<f64>, wall_s: f64) -> Option<String> {
    let share = throttled_s? / wall_s;
    if share <= 0.01 {
        return None;
    }
    Some(format!(
        "a CPU quota held the processes back for {} of the time; run where no quota applies.",
        figures::percent(share)
    ))
}

/// Finds an impossible share of CPU time.
fn damaged(generator: &GeneratorFacts) -> Option<String> {
    let share = generator.cpu_share?;
    if (0.0..=2.0).contains(&share) {
        return None;
    }
    Some("the generator's CPU time is no share of a whole; the record is damaged.".to_owned())
}

/// Finds a round with more answers than the law allows: a call was skipped, or a clock is wrong.
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
    let mut most = bound * most_over_the_bound(chapter, scenario, &round.outcome);
    if round.variant == PROBLEM {
        most += bound * BEYOND_CHANCE * chapter.law.chance_of_the_problem(round.outcome.seconds);
    }
    if machine::may_have_read_late(round) {
        most *= 2.0;
    }
    let is_beyond = measured > most;
    if !is_beyond {
        return None;
    }
    Some(format!(
        "{} requests per second are more than the {} that the law allows ({}); a call was skipped or a clock is wrong. Run it again, and look at what the service leaves out if it says so again.",
        figures::count(measured.round()),
        figures::count(bound.round()),
        chapter.law.name()
    ))
}

/// Returns the factor of the bound that is still possible. It allows 5 % for clocks, and one more answer of
/// each user at the edges of the recorded span.
fn most_over_the_bound(chapter: &ChapterFile, scenario: &Scenario, outcome: &Outcome) -> f64 {
    let cycle = scenario.think_s + chapter.law.shortest_answer_ms().unwrap_or(0.0) / 1e3;
    1.05 + cycle / outcome.seconds
}

/// Standard deviations above the mean that are put down to chance. A normal figure passes them once in three million
/// rounds; a sum of few batches does so more often.
const BEYOND_CHANCE: f64 = 5.0;

/// Finds that fewer rounds counted than a verdict needs.
pub(crate) fn too_few(record: &Record) -> Option<String> {
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
    for (index, together) in compared.iter().enumerate() {
        let figures = match together {
            Some(together) => together.figures(&effect.quantity),
            None => None,
        };
        if figures.is_none() {
            return Some(format!(
                "triplet {} is not a problem and two fixes with a figure each.",
                index + 1
            ));
        }
    }
    for (name, _) in chapter.further_scenarios() {
        let mut rounds = record.claimed_in(name).into_iter();
        if !rounds.any(|round| round.variant == record.variant) {
            return Some(format!(
                "too few rounds: none measured the fix in the scenario `{name}`."
            ));
        }
    }
    None
}

/// Finds a claim whose quantity is missing from a round.
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

/// Formats a clause about noise that could by itself look like the claimed gain; `None` if it could not.
pub(crate) fn too_noisy(effect: &Finding, floor: f64) -> Option<String> {
    let claimed = claimed(effect);
    let could_pass = 1.0 + floor >= claimed;
    if !could_pass {
        return None;
    }
    Some(format!(
        "equal servers differ by {}, which could pass for the claimed {} times",
        figures::percent(floor),
        figures::ratio(claimed)
    ))
}

/// Finds a requirement of the claims that the machine does not meet.
pub(crate) fn lack(conditions: &Conditions, environment: &Environment) -> Option<String> {
    let nodes = conditions.numa_nodes_at_least;
    for (what, has, needs) in [
        ("CPUs", environment.cpus_usable, conditions.cpus_at_least),
        ("NUMA nodes", environment.numa_nodes, nodes),
    ] {
        if has < needs {
            return Some(format!(
                "this machine cannot show it: the claim needs {needs} {what}, and here there is {has}; the root cause is shown instead. Run it where there are as many."
            ));
        }
    }
    None
}
