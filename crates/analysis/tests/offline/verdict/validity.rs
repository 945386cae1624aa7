//! Runs that say nothing about the claim, whatever their figures.

use super::*;

#[test]
fn an_unoptimised_build_is_invalid() {
    let mut record = record();
    record.environment.optimised = false;
    judged(&record, Invalid, &["optimised"]);
}

#[test]
fn one_wrong_answer_or_error_is_enough() {
    let mut wrong = record();
    wrong.rounds[6].outcome.wrong_answers = 1;
    wrong.rounds[6].outcome.first_wrong_answer = Some("7\n".into());
    judged(&wrong, Invalid, &["round 7", "\"7\\n\"", "wrong"]);
    let mut failed = record();
    let errors = [("status 500".into(), 3), ("connect".into(), 1)];
    failed.rounds[15].outcome.errors = errors.into();
    judged(&failed, Invalid, &["round 16", "`status 500`", "1 other"]);
}

#[test]
fn silence_is_no_infinite_gain() {
    let mut record = record();
    change(&mut record, SATURATED, PROBLEM, |round| {
        completes(round, 0);
    });
    let analysis = judged(&record, Invalid, &["nothing was answered"]);
    assert_eq!(analysis.effect().unwrap().ratio, None);
    assert_eq!(analysis.effect().unwrap().interval, None);
}

#[test]
fn a_bound_generator_is_named() {
    let bound = |share, kind, words: &[&str]| {
        let mut record = record();
        record.rounds[5].outcome.generator.cpu_share = share;
        judged(&record, kind, words);
    };
    bound(Some(0.97), Invalid, &["round 6", "generator-bound", "97 %"]);
    bound(Some(f64::NAN), Invalid, &["generator-bound"]);
    bound(None, Proved, &[]);
}

#[test]
fn another_generator_that_is_bound_spoils_nothing() {
    let mut record = record();
    let mut locust = outcome(200, 1_300, 4.0, 888.0);
    locust.generator.name = GeneratorKind::Locust;
    locust.generator.cpu_share = Some(1.0);
    locust.errors.insert("time_out".into(), 9);
    record
        .rounds
        .push(round(Purpose::Agreement, SOLUTION, "load", 200.0, locust));
    judged(&record, Proved, &[]);
}

#[test]
fn a_quota_that_held_the_run_back_is_named() {
    let throttled = |seconds, kind, words: &[&str]| {
        let mut record = record();
        record.rounds[3].throttled_s = seconds;
        judged(&record, kind, words);
    };
    throttled(Some(0.4), Invalid, &["round 4", "quota", "19 %"]);
    throttled(Some(f64::NAN), Invalid, &["quota"]);
    throttled(None, Proved, &[]);
}

#[test]
fn noise_as_large_as_the_claim_is_invalid() {
    let mut record = claims_at_least(1.2);
    restless(&mut record, 20_000);
    judged(&record, Invalid, &["too noisy", "45 %", "1.20"]);
    // A machine that cannot show the gain is not asked for it.
    record.chapter.conditions.numa_nodes_at_least = 2;
    judged(&record, Inconclusive, &["NUMA nodes"]);
}

#[test]
fn without_an_equal_pair_there_is_no_noise_floor() {
    let mut record = record();
    record.rounds.remove(0);
    judged(&record, Invalid, &["noise floor is unknown"]);
}

#[test]
fn too_few_pairs_are_invalid() {
    let mut record = record();
    record.rounds.drain(10..14);
    judged(&record, Invalid, &["4 pairs", "6 are needed"]);
    record
        .rounds
        .retain(|round| round.purpose == Purpose::Equal);
    let analysis = judged(&record, Invalid, &["0 pairs"]);
    assert_eq!(analysis.effect().unwrap().ratio, None);
    record.rounds.clear();
    judged(&record, Invalid, &[]);
}

#[test]
fn a_claim_in_another_scenario_needs_a_round() {
    let mut record = record();
    record.rounds.retain(|round| round.scenario != PUBLISHED);
    judged(&record, Invalid, &["`published`"]);
}

#[test]
fn two_rounds_of_one_variant_are_no_pair() {
    let mut record = record();
    record.rounds.swap(3, 4);
    record.rounds[3].variant = SOLUTION.into();
    record.rounds[2].variant = SOLUTION.into();
    judged(&record, Invalid, &[]);
}

#[test]
fn a_missing_count_is_no_count() {
    let mut missing = record();
    missing.rounds[8].readings.clear();
    judged(&missing, Invalid, &["did not report", IN_FLIGHT]);
    let mut nonsense = record();
    counts(&mut nonsense, PROBLEM, IN_FLIGHT, f64::NAN);
    judged(&nonsense, Invalid, &["the problem did not report"]);
}

#[test]
fn more_than_the_law_allows_is_not_believed() {
    let mut record = record();
    change(&mut record, SATURATED, SOLUTION, |round| {
        completes(round, 60_000);
    });
    judged(&record, Invalid, &["37,500", "20,000", "Little"]);
}

#[test]
fn figures_that_contradict_each_other_are_not_believed() {
    for nonsense in [f64::NAN, f64::INFINITY, 0.0, -5.0, 1e9] {
        let mut record = record();
        record.rounds[4].outcome.requests_per_second = nonsense;
        judged(&record, Invalid, &["round 5"]);
    }
    let mut record = record();
    record.rounds[4].outcome.seconds = 0.0;
    judged(&record, Invalid, &[]);
}

#[test]
fn another_load_than_the_claims_is_not_believed() {
    let mut fewer = record();
    fewer.rounds[4].outcome.generator.users = 100;
    judged(&fewer, Invalid, &["round 5", "100 users", "1,000"]);
    let mut elsewhere = record();
    elsewhere.rounds[4].scenario = "check".into();
    judged(&elsewhere, Invalid, &["`check`"]);
    elsewhere.rounds[4].scenario = "nowhere".into();
    judged(&elsewhere, Invalid, &["`nowhere`"]);
}

#[test]
fn a_scenario_that_the_chapter_lost_is_not_a_crash() {
    let mut record = record();
    record.chapter.scenarios.clear();
    judged(&record, Invalid, &[]);
}

#[test]
fn a_chapter_that_claims_no_gain_says_nothing() {
    for none in [1.0, 0.5] {
        let words = ["which is none", "chapter.toml"];
        judged(&claims_at_least(none), Invalid, &words);
    }
}
