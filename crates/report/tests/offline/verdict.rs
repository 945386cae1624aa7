//! Every way in which a run can end, and some by which one might fool it.

mod validity;

use crate::support::{change, completes, outcome, record, round};
use analysis::verdict::{Analysis, VerdictKind, analyse};
use measurement::{
    claim::{Metric, PROBLEM, SOLUTION},
    law::{Amdahl, Law},
    outcome::GeneratorKind,
    record::{Purpose, Record},
};
use rand::Rng as _;
use rand_pcg::Pcg32;

use self::VerdictKind::{Inconclusive, Invalid, Proved, Refuted};

#[track_caller]
fn judged(record: &Record, kind: VerdictKind, words: &[&str]) -> Analysis {
    let analysis = analyse(record);
    let reason = &analysis.verdict.reason;
    println!("{}: {reason}", analysis.verdict.kind);
    assert_eq!(analysis.verdict.kind, kind, "{reason}");
    for word in words {
        assert!(reason.contains(word), "{word:?} is not in: {reason}");
    }
    assert_eq!(reason.lines().count(), 1, "{reason}");
    assert!(reason.ends_with('.'), "{reason}");
    assert!(
        !reason.contains("NaN") && !reason.contains("inf "),
        "{reason}"
    );
    analysis
}

/// Gives the solution's rounds so many answers, in turn.
fn solution_completes(record: &mut Record, counts: &[u64]) {
    let mut counts = counts.iter().cycle();
    change(record, Purpose::Effect, SOLUTION, |round| {
        completes(round, *counts.next().unwrap());
    });
}

/// The claim's ratio, so that a test can come near it with whole answers.
fn claiming(at_least: f64) -> Record {
    let mut record = record();
    record.chapter.effect.at_least = at_least;
    record
}

#[test]
fn a_run_as_it_should_go_is_proved() {
    let analysis = judged(
        &record(),
        Proved,
        &["1 against 1,000", "300", "95 % interval"],
    );
    let effect = &analysis.effect;
    let (low, high) = effect.interval.unwrap();
    assert!(low <= effect.ratio.unwrap() && effect.ratio.unwrap() <= high);
    assert!(
        (880.0..900.0).contains(&effect.ratio.unwrap()),
        "{effect:?}"
    );
    assert!(
        (0.0..0.05).contains(&effect.noise_floor.unwrap()),
        "{effect:?}"
    );
    assert!((analysis.prediction.unwrap().ratio - 1_000.0).abs() < 1e-6);
    let bound = analysis.bound.unwrap();
    assert!((0.95..1.0).contains(&bound.share), "{bound:?}");
}

#[test]
fn the_same_record_is_always_judged_alike() {
    assert_eq!(analyse(&record()), analyse(&record()));
}

#[test]
fn an_interval_that_touches_the_claim_from_above_is_proved() {
    let mut record = claiming(875.0);
    solution_completes(&mut record, &[28_000]);
    judged(&record, Proved, &["875"]);
}

/// A run whose law is Amdahl's, from a profile that predicts so much; 890 times are measured.
fn predicting(ratio: f64) -> Record {
    let mut record = record();
    record.chapter.bound = None;
    record.chapter.law = Law::Amdahl(Amdahl {
        frames: vec!["malloc".to_owned()],
        removes: "allocating".to_owned(),
        within: Some(0.15),
    });
    record.profiles[0].frames_share = Some(1.0 - 1.0 / ratio);
    record
}

#[test]
fn a_gain_near_the_law_or_beyond_its_lower_bound_is_proved() {
    let law = |ratio| judged(&predicting(ratio), Proved, &[]).law.unwrap();
    let (near, beyond) = (law(1_000.0), law(500.0));
    assert!(near.holds() && !near.is_exceeded(), "{near:?}");
    assert!(beyond.holds() && beyond.is_exceeded(), "{beyond:?}");
}

#[test]
fn a_gain_that_falls_short_of_the_law_is_inconclusive() {
    let words = ["the law predicted 1,200 times, which is 26 % off"];
    judged(&predicting(1_200.0), Inconclusive, &words);
}

// Not shown.

#[test]
fn no_gain_is_inconclusive() {
    let mut record = record();
    solution_completes(&mut record, &[31, 32, 33]);
    judged(&record, Inconclusive, &["no gain", "equal servers differ"]);
}

#[test]
fn a_gain_within_the_noise_is_no_gain() {
    let mut record = record();
    record.rounds[0].outcome.completed = 20_000;
    record.rounds[0].outcome.requests_per_second = 12_500.0;
    solution_completes(&mut record, &[40, 41, 42]);
    judged(&record, Inconclusive, &["no gain"]);
}

#[test]
fn an_interval_that_straddles_the_claim_says_so() {
    let mut record = claiming(900.0);
    solution_completes(&mut record, &[28_000, 28_900, 29_700]);
    judged(&record, Inconclusive, &["straddles", "900", "--pairs 12"]);
}

#[test]
fn a_solution_far_from_the_law_is_inconclusive() {
    let mut record = record();
    change(&mut record, Purpose::Bound, SOLUTION, |round| {
        completes(round, 18_000);
    });
    judged(&record, Inconclusive, &["82 %", "5,455", "95 %"]);
}

#[test]
fn a_machine_that_cannot_show_it_is_told_so() {
    let mut regions = record();
    regions.chapter.conditions.numa_nodes_at_least = 2;
    judged(&regions, Inconclusive, &["this machine", "NUMA nodes"]);
    let mut cpus = record();
    cpus.chapter.conditions.cpus_at_least = 4;
    judged(&cpus, Inconclusive, &["this machine", "4 CPUs"]);
}

// Refuted.

#[test]
fn a_root_cause_that_contradicts_refutes() {
    let mut problem = record();
    change(&mut problem, Purpose::Effect, PROBLEM, |round| {
        round
            .readings
            .insert("database_calls_in_flight_peak".into(), 2.0);
    });
    judged(&problem, Refuted, &["was 2 in the problem", "at most 1"]);
    let mut solution = record();
    change(&mut solution, Purpose::Effect, SOLUTION, |round| {
        round
            .readings
            .insert("database_calls_in_flight_peak".into(), 899.0);
    });
    judged(
        &solution,
        Refuted,
        &["was 899 in the solution", "at least 900"],
    );
}

#[test]
fn one_round_that_breaks_the_limit_is_enough() {
    let mut record = record();
    let last = record.rounds.iter_mut().rev();
    let round = last
        .filter(|round| round.purpose == Purpose::Effect && round.variant == PROBLEM)
        .last()
        .unwrap();
    round
        .readings
        .insert("database_calls_in_flight_peak".into(), 3.0);
    judged(&record, Refuted, &["was 3"]);
}

#[test]
fn a_gain_surely_below_the_claim_refutes() {
    let mut record = record();
    solution_completes(&mut record, &[320, 330, 340]);
    judged(&record, Refuted, &["300"]);
}

#[test]
fn a_loss_refutes() {
    let mut record = record();
    change(&mut record, Purpose::Effect, SOLUTION, |round| {
        completes(round, 3);
    });
    judged(&record, Refuted, &["10.7 times worse"]);
}

// Order.

#[test]
fn a_wrong_answer_comes_before_what_the_figures_say() {
    let mut record = record();
    change(&mut record, Purpose::Effect, SOLUTION, |round| {
        completes(round, 60_000);
        round.outcome.wrong_answers = 60_000;
        round.readings.clear();
        round.outcome.generator.cpu_share = Some(1.0);
    });
    judged(&record, Invalid, &["wrong answers"]);
}

#[test]
fn an_invalid_run_refutes_nothing() {
    let mut record = record();
    change(&mut record, Purpose::Effect, PROBLEM, |round| {
        round
            .readings
            .insert("database_calls_in_flight_peak".into(), 500.0);
    });
    record.environment.optimised = false;
    judged(&record, Invalid, &["optimised"]);
}

// Effects on latency.

#[test]
fn a_smaller_latency_is_a_larger_ratio() {
    let mut record = claiming(10.0);
    record.chapter.effect.metric = Metric::P99Ms;
    let analysis = judged(&record, Proved, &["99th percentile"]);
    assert!(analysis.effect.ratio.unwrap() > 15.0);
    change(&mut record, Purpose::Effect, SOLUTION, |round| {
        round.outcome.latency.quantiles.clear();
    });
    judged(&record, Invalid, &["pair 1"]);
}

// Anything at all.

/// Puts nonsense into places chosen at random: whatever comes of it, only a
/// sound record is ever proved, and nothing panics or prints nonsense.
#[test]
fn no_nonsense_is_ever_proved() {
    const NONSENSE: [f64; 8] = [f64::NAN, f64::INFINITY, -1.0, 0.0, 1e-300, 1e300, 1e9, 0.5];
    let mut random = Pcg32::new(11, 1);
    let mut below = move |n: usize| random.next_u32() as usize % n;
    for _ in 0..400 {
        let mut record = record();
        for _ in 0..=below(3) {
            let value = NONSENSE[below(NONSENSE.len())];
            let index = below(record.rounds.len());
            let kinds = below(11);
            let round = &mut record.rounds[index];
            match kinds {
                0 => round.outcome.requests_per_second = value,
                1 => round.outcome.seconds = value,
                2 => round.outcome.completed = below(3) as u64,
                3 => round.outcome.generator.cpu_share = Some(value),
                4 => round.throttled_s = Some(value),
                5 => round
                    .readings
                    .values_mut()
                    .for_each(|reading| *reading = value),
                6 => round.readings.clear(),
                7 => round.outcome.errors = [("closed".to_owned(), 1)].into(),
                8 => round.variant = "exercise".into(),
                9 => drop(record.rounds.remove(index)),
                _ => record.chapter.effect.at_least = value,
            }
        }
        let analysis = analyse(&record);
        let effect = &analysis.effect;
        let reason = &analysis.verdict.reason;
        assert!(
            !reason.contains("NaN") && !reason.contains("inf"),
            "{reason}"
        );
        if analysis.verdict.kind == Proved {
            let (low, high) = effect.interval.unwrap();
            assert!(
                low >= record.chapter.effect.at_least && high.is_finite(),
                "{reason}"
            );
            assert!(effect.pairs.iter().all(Option::is_some) && effect.pairs.len() >= 6);
            assert!(analysis.root_cause.problem_holds && analysis.root_cause.solution_holds);
            assert!(
                record
                    .rounds
                    .iter()
                    .all(|round| round.outcome.errors.is_empty())
            );
        }
    }
}
