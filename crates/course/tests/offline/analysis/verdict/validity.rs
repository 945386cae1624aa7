//! Runs that say nothing about the claim, whatever their figures.

use super::*;
use engine::outcome::Outcome;

/// Judges a good run with one change, and asserts that it is invalid.
#[track_caller]
fn is_invalid(edit: impl FnOnce(&mut Record), words: &[&str]) -> Analysis {
    changed(edit, Invalid, words)
}

/// Judges a good run with one change of a round's outcome at the generator, and asserts that it is invalid.
#[track_caller]
fn seen(round: usize, edit: impl FnOnce(&mut Outcome), words: &[&str]) {
    is_invalid(|record| edit(&mut record.rounds[round - 1].outcome), words);
}

#[test]
fn a_build_or_an_answer_that_is_not_right_is_enough() {
    is_invalid(
        |record| record.environment.optimised = false,
        &["optimised"],
    );
    let wrong = |outcome: &mut Outcome| {
        outcome.wrong_answers = 1;
        outcome.first_wrong_answer = Some("7\n".into());
    };
    seen(7, wrong, &["round 7", "\"7\\n\"", "wrong"]);
    let errors = [("status 500".into(), 3), ("connect".into(), 1)];
    let fails = |outcome: &mut Outcome| outcome.errors = errors.into();
    seen(16, fails, &["round 16", "`status 500`", "1 other"]);
}

#[test]
fn silence_is_no_infinite_gain() {
    let silent = |record: &mut Record| {
        change(record, SATURATED, PROBLEM, |round| completes(round, 0));
    };
    let analysis = is_invalid(silent, &["nothing was answered"]);
    assert_eq!(analysis.effect().unwrap().ratio, None);
    assert_eq!(analysis.effect().unwrap().interval, None);
}

#[test]
fn a_quota_that_held_the_run_back_and_impossible_cpu_times_are_named() {
    for (is_quota, figure, kind, words) in [
        (false, Some(f64::NAN), Invalid, &["round 4", "damaged"][..]),
        (false, Some(f64::INFINITY), Invalid, &["damaged"]),
        (false, None, Proved, &[]),
        (true, Some(0.4), Invalid, &["round 4", "quota", "19 %"]),
        (true, Some(f64::NAN), Invalid, &["quota"]),
        (true, None, Proved, &[]),
    ] {
        let edit = |record: &mut Record| match &mut record.rounds[3] {
            round if is_quota => round.throttled_s = figure,
            round => round.outcome.generator.cpu_share = figure,
        };
        changed(edit, kind, words);
    }
}

#[test]
fn noise_as_large_as_the_claim_decides_nothing() {
    let mut record = claims_at_least(1.2);
    restless(&mut record, 14_000);
    judged(
        &record,
        Inconclusive,
        &["could pass", "1.20", "More rounds"],
    );
    // A machine that cannot show the gain does not have to show it.
    record.chapter.conditions.numa_nodes_at_least = 2;
    judged(&record, Inconclusive, &["NUMA nodes"]);
}

#[test]
fn rounds_that_are_not_there_are_named() {
    let keeping = |keeps: fn(&Round) -> bool, words: &[&str]| {
        is_invalid(|record| record.rounds.retain(keeps), words)
    };
    let is_equal = |round: &Round| round.purpose == Purpose::Equal;
    keeping(
        |round| round.variant != SOLUTION || round.scenario == PUBLISHED,
        &[],
    );
    keeping(|round| round.scenario != PUBLISHED, &["`published`"]);
    keeping(|_| false, &[]);
    let analysis = keeping(is_equal, &["2 triplets"]);
    assert_eq!(analysis.effect().unwrap().ratio, None);
    let two = |record: &mut Record| drop(record.rounds.drain(6..18));
    is_invalid(two, &["2 triplets", "3 are needed"]);
    // With a busy machine to blame, the run is not the problem's or the fix's fault.
    let set_aside = |elsewhere: Option<f64>| {
        move |record: &mut Record| {
            for round in &mut record.rounds[6..18] {
                round.purpose = Purpose::Disturbed;
                round.elsewhere_share = elsewhere;
            }
        }
    };
    let words = [
        "2 triplets",
        "other programs used 90 % of the machine's CPU time in a round of the ",
        "Close them",
    ];
    changed(set_aside(Some(0.9)), Inconclusive, &words);
    // Rounds of a service that answers nothing are set aside, too.
    is_invalid(set_aside(Some(0.1)), &["2 triplets", "3 are needed"]);
    // Three rounds of one variant are no triplet.
    let one = |record: &mut Record| record.rounds[0].variant = SOLUTION.into();
    is_invalid(one, &["triplet 1 is not"]);
}

#[test]
fn a_missing_count_is_no_count() {
    let missing = |record: &mut Record| record.rounds[7].readings.clear();
    is_invalid(missing, &["did not report", IN_FLIGHT]);
    let nonsense = |record: &mut Record| counts(record, PROBLEM, IN_FLIGHT, f64::NAN);
    is_invalid(nonsense, &["the problem did not report"]);
}

#[test]
fn more_than_the_law_allows_is_not_believed() {
    let many = |record: &mut Record| solution_completes(record, &[60_000]);
    is_invalid(many, &["37,500", "20,000", "Little"]);
    // On a busy machine the generator reads answers late, and counts some from before the recorded span.
    let late = |record: &mut Record| {
        record.rounds[0].outcome.generator.waited_share = Some(0.3);
        completes(&mut record.rounds[0], 48);
    };
    changed(late, Proved, &[]);
}

#[test]
fn chance_is_no_reason_to_disbelieve_a_round_of_a_barrier() {
    // 24 holds fit into this round, and a write follows 20 reads on average, but never each 20.
    let barrier = Law::Barrier { hold_ms: 50.0 };
    assert!((barrier.chance_of_the_problem(1.2) - (1.0_f64 / 24.0).sqrt()).abs() < 1e-12);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let rounds = |per_second: f64| {
        let mut record = record();
        record.chapter.law = barrier.clone();
        for scenario in record.chapter.scenarios.values_mut() {
            scenario.write_share = 0.05;
        }
        for round in &mut record.rounds {
            if round.variant == PROBLEM && round.purpose == Purpose::Claim {
                completes(round, (per_second * round.outcome.seconds) as u64);
            }
        }
        analyse(&record).verdict
    };
    let said = |per_second| rounds(per_second).reason.contains("the law allows");
    assert!(!said(452.0), "{:?}", rounds(452.0));
    assert!(said(2_000.0), "{:?}", rounds(2_000.0));
}

#[test]
fn figures_that_contradict_each_other_are_not_believed() {
    for nonsense in [f64::NAN, f64::INFINITY, 0.0, -5.0, 1e9] {
        seen(
            5,
            |outcome| outcome.requests_per_second = nonsense,
            &["round 5"],
        );
    }
    seen(5, |outcome| outcome.seconds = 0.0, &[]);
}

#[test]
fn another_load_than_the_claims_is_not_believed() {
    let words = ["round 5", "100 users", "1,000"];
    seen(5, |outcome| outcome.generator.users = 100, &words);
    for scenario in ["check", "nowhere"] {
        let elsewhere = |record: &mut Record| record.rounds[4].scenario = scenario.into();
        is_invalid(elsewhere, &[&format!("`{scenario}`")]);
    }
    // A chapter that lost its scenarios does not crash the analysis.
    is_invalid(|record| record.chapter.scenarios.clear(), &[]);
}

#[test]
fn a_chapter_that_claims_no_gain_says_nothing() {
    for none in [1.0, 0.5] {
        let words = ["which is none", "chapter.toml"];
        judged(&claims_at_least(none), Invalid, &words);
    }
}
