//! Every way in which a run can end, and some ways to fool the verdict.

mod validity;

use crate::support::{claiming, outcome, record, round};
use course::analysis::{
    finding::Finding,
    verdict::{Analysis, VerdictKind, analyse},
};
use course::measurement::{
    chapter_file::Noise,
    claim::{Bound, Claim, Claims, LoadMetric, PROBLEM, Quantity, Role, SOLUTION},
    law::{CPUS, Law},
    record::{Purpose, Record, Round},
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
    let is_number = !reason.contains("NaN") && !reason.contains("inf ");
    assert!(is_number, "{reason}");
    analysis
}

/// Judges a good run with one change.
#[track_caller]
fn changed(edit: impl FnOnce(&mut Record), kind: VerdictKind, words: &[&str]) -> Analysis {
    let mut record = record();
    edit(&mut record);
    judged(&record, kind, words)
}

/// The scenario of the effect, and the other one in which something is claimed.
const SATURATED: &str = "saturated";
const PUBLISHED: &str = "published";
/// The counter of the chapter's root cause.
const IN_FLIGHT: &str = "database_calls_in_flight_peak";

/// Changes every round of the variant by which a claim in the scenario is judged.
fn change(record: &mut Record, scenario: &str, variant: &str, mut edit: impl FnMut(&mut Round)) {
    let chosen = record.rounds.iter_mut().filter(|round| {
        round.purpose == Purpose::Claim && round.scenario == scenario && round.variant == variant
    });
    for round in chosen {
        edit(round);
    }
}

/// Gives a round this number of answers.
pub(crate) fn completes(round: &mut Round, completed: u64) {
    round.outcome.completed = completed;
    round.outcome.requests_per_second = completed as f64 / round.outcome.seconds;
}

/// Changes a count in every round of the variant in the effect's scenario.
fn counts(record: &mut Record, variant: &str, counter: &str, reading: f64) {
    change(record, SATURATED, variant, |round| {
        round.readings.insert(counter.to_owned(), reading);
    });
}

/// Makes the equal servers differ: the first one gets this number of answers.
fn restless(record: &mut Record, completed: u64) {
    let mut equal = record.rounds.iter_mut();
    let first = equal.find(|round| round.purpose == Purpose::Equal);
    completes(first.expect("a round of equal servers"), completed);
}

/// Gives the solution's rounds these numbers of answers, in turn.
fn solution_completes(record: &mut Record, counts: &[u64]) {
    let mut counts = counts.iter().cycle();
    let of_solution = |round: &&mut Round| {
        let is_effects = matches!(round.purpose, Purpose::Claim | Purpose::Equal);
        is_effects && round.scenario == SATURATED && round.variant == SOLUTION
    };
    for round in record.rounds.iter_mut().filter(of_solution) {
        completes(round, *counts.next().unwrap());
    }
}

/// Sets the claim's ratio, so that a test can come near it with whole answers.
fn claims_at_least(at_least: f64) -> Record {
    let mut record = record();
    claiming(&mut record, |claims| {
        claims[1].ratio = Some(Bound::at_least(at_least));
    });
    record
}

/// Returns the finding about the prediction in a scenario.
fn predicted<'a>(analysis: &'a Analysis, scenario: &str) -> &'a Finding {
    let mut predictions = analysis.of(Role::Prediction);
    predictions
        .find(|finding| finding.claim.scenario() == scenario)
        .unwrap()
}

#[test]
fn a_run_as_it_should_go_is_proved() {
    let words = ["1 against 1,000", "300", "95 % interval"];
    let analysis = judged(&record(), Proved, &words);
    let effect = analysis.effect().unwrap();
    let (low, high) = effect.interval.unwrap();
    let (ratio, floor) = (effect.ratio.unwrap(), effect.noise_floor.unwrap());
    assert!(low <= ratio && ratio <= high);
    assert!((880.0..900.0).contains(&ratio), "{effect:?}");
    assert!((0.0..0.05).contains(&floor), "{effect:?}");
    assert!((analysis.prediction.as_ref().unwrap().ratio - 1_000.0).abs() < 1e-6);
    let published = predicted(&analysis, PUBLISHED);
    let share = published.measured.unwrap() / published.ratio.unwrap();
    assert!((0.95..1.0).contains(&share), "{published:?}");
    let mut findings = analysis.findings.iter();
    assert!(findings.all(|finding| finding.holds != Some(false)));
}

/// The problem has 32 answers and the solution the given ones; the table holds the verdicts for a claimed
/// ratio.
#[test]
fn a_gain_is_judged_by_where_its_interval_lies() {
    for (claimed, completed, kind, words) in [
        // The interval touches the claim from above, straddles it, lies below it, holds no gain, or a loss.
        (875.0, &[28_000][..], Proved, &["875"][..]),
        (
            900.0,
            &[28_000, 28_900, 29_700],
            Inconclusive,
            &["not certain", "900", "More rounds may tell: --triplets 12"],
        ),
        (300.0, &[320, 330, 340], Refuted, &["300"]),
        (
            300.0,
            &[31, 32, 33],
            Inconclusive,
            &["no gain", "equal servers differ"],
        ),
        (300.0, &[3], Refuted, &["10.7 times worse"]),
    ] {
        let mut record = claims_at_least(claimed);
        solution_completes(&mut record, completed);
        judged(&record, kind, words);
    }
    let within_noise = |record: &mut Record| {
        solution_completes(record, &[36, 37, 38]);
        restless(record, 18);
    };
    changed(within_noise, Inconclusive, &["no gain"]);
}

/// Makes a run whose law is Amdahl's, with a probe that predicts `ratio` times; 890 times are measured.
fn predicting(ratio: f64) -> Record {
    let mut record = record();
    claiming(&mut record, |claims| {
        claims.retain(|claim| claim.scenario() == SATURATED);
        for claim in claims
            .iter_mut()
            .filter(|claim| claim.role == Role::Prediction)
        {
            claim.within = Some(0.15);
        }
    });
    let left = 0.25;
    record.chapter.law = Law::Amdahl {
        removes: "allocating".to_owned(),
        probe: "fewer".to_owned(),
        left,
        scenario: SATURATED.to_owned(),
        frames: Vec::new(),
    };
    let share = 1.0 - 1.0 / ratio;
    let problem = record.effect_rounds()[0].clone();
    let gain = 1.0 / (1.0 - (1.0 - left) * share);
    let pair = [(PROBLEM, 1.0), ("fewer", gain)];
    for (variant, times) in [pair, pair, pair].concat() {
        let mut round = Round {
            purpose: Purpose::Law,
            variant: variant.to_owned(),
            ..problem.clone()
        };
        round.outcome.seconds /= times;
        round.outcome.requests_per_second *= times;
        record.rounds.push(round);
    }
    record
}

#[test]
fn a_gain_keeps_to_the_law() {
    let analysis = judged(&predicting(1_000.0), Proved, &[]);
    let near = predicted(&analysis, SATURATED);
    assert_eq!(near.holds, Some(true), "{near:?}");
    assert!(near.off().unwrap().abs() < 0.15, "{near:?}");
    for (ratio, words) in [
        (500.0, ["the law predicts 500 times", "79 % apart"]),
        (1_200.0, ["the law predicts 1,200 times", "26 % apart"]),
    ] {
        let analysis = judged(&predicting(ratio), Inconclusive, &words);
        assert!(analysis.verdict.reason.contains("at most 15 %"));
    }
    // A probe that is slower than the problem says nothing.
    let mut slow = predicting(1_000.0);
    for round in slow
        .rounds
        .iter_mut()
        .filter(|round| round.variant == "fewer")
    {
        completes(round, 1);
    }
    judged(
        &slow,
        Inconclusive,
        &["fit no prediction", "a run on another day"],
    );
    // A law without a prediction does not matter if no claim depends on it.
    claiming(&mut slow, |claims| {
        for claim in claims {
            claim.within = None;
        }
    });
    judged(&slow, Proved, &[]);
}

#[test]
fn noise_makes_no_prediction_come_true_and_none_false() {
    for (predicted, words) in [
        // The distance may be small enough: more rounds would show it.
        (1_000.0, ["10 % apart", "More rounds may tell"]),
        (1_020.0, ["12 % apart", "More rounds may tell"]),
        // The distance is too large for more rounds to help.
        (1_070.0, ["16 % apart", "would hardly change that"]),
    ] {
        let mut record = predicting(predicted);
        let problems = record.rounds.iter_mut().filter(|round| {
            round.purpose == Purpose::Claim
                && round.variant == PROBLEM
                && round.scenario == SATURATED
        });
        for (round, answers) in problems.zip([28, 36, 31, 33, 29, 35]) {
            completes(round, answers);
        }
        judged(&record, Inconclusive, &words);
    }
}

/// The probe's own rounds differ, so their prediction is as uncertain as they are.
#[test]
fn a_prediction_that_was_measured_is_no_better_than_its_rounds() {
    let mut record = predicting(1_000.0);
    let narrow = predicted(&analyse(&record), SATURATED).interval.unwrap();
    let probes = record
        .rounds
        .iter_mut()
        .filter(|round| round.variant == "fewer");
    for (round, share) in probes.zip([0.9, 1.0, 1.1]) {
        round.outcome.requests_per_second *= share;
        round.outcome.seconds /= share;
    }
    let analysis = judged(&record, Inconclusive, &["the law predicts", "More rounds"]);
    let wide = predicted(&analysis, SATURATED).interval.unwrap();
    assert!(
        wide.1 / wide.0 > 2.0 * narrow.1 / narrow.0,
        "{wide:?} {narrow:?}"
    );
}

/// Changes what every round reports about the machine.
fn busy(record: &mut Record, edit: impl Fn(&mut Round)) {
    record.rounds.iter_mut().for_each(edit);
}

/// Makes other programs take five sixths of the generator's CPU, and the generator most of the rest.
fn waited(round: &mut Round) {
    round.outcome.generator.waited_share = Some(0.83);
    round.outcome.generator.cpu_share = Some(0.1);
}

#[test]
fn a_busy_machine_makes_a_gain_a_lower_bound() {
    let words = [
        "at least 892 times better",
        "300",
        "The machine was busy, so the real gain may be larger",
        "83 % of the load generator's CPU",
    ];
    changed(|record| busy(record, waited), Proved, &words);
    let elsewhere = |round: &mut Round| round.elsewhere_share = Some(0.7);
    let words = ["at least", "70 % of the machine's CPU time"];
    changed(|record| busy(record, elsewhere), Proved, &words);
    let bound = |round: &mut Round| {
        if round.variant == SOLUTION {
            round.outcome.generator.cpu_share = Some(0.97);
        }
    };
    let words = ["at least", "used 97 % of its CPU"];
    changed(|record| busy(record, bound), Proved, &words);
    // A law does not account for CPUs that other programs share.
    let missed = |record: &mut Record| {
        busy(record, waited);
        change(record, PUBLISHED, SOLUTION, |round| completes(round, 9_000));
    };
    let analysis = changed(missed, Proved, &["at least"]);
    assert_eq!(predicted(&analysis, PUBLISHED).holds, None);
}

#[test]
fn a_busy_machine_decides_no_gain_that_noise_may_have_made() {
    for (noise, words) in [
        (Noise::Up, "which makes the gain look larger"),
        (
            Noise::Both,
            "which can make the gain look larger or smaller",
        ),
    ] {
        let pushed = |record: &mut Record, edit: fn(&mut Round)| {
            record.chapter.noise = noise;
            busy(record, edit);
        };
        let all = [
            "not decided: other programs took 83 % of the load generator's CPU in round 1 ",
            "Close them and run this again. Requests per second: 893 times better",
            "where at least 300 was claimed, but the machine was busy",
            words,
            "The fix looks right so far: peak calls in flight inside the database: 1,000",
        ];
        changed(|record| pushed(record, waited), Inconclusive, &all);
        // A count is no gain.
        let one_at_a_time = |record: &mut Record| {
            pushed(record, waited);
            counts(record, SOLUTION, IN_FLIGHT, 1.0);
        };
        changed(one_at_a_time, Refuted, &["root cause contradicts"]);
        changed(|record| pushed(record, |_| ()), Proved, &["95 % interval"]);
        // Rounds that no effect rests on cannot have pushed it.
        let elsewhere = |round: &mut Round| {
            if round.scenario == PUBLISHED {
                waited(round);
            }
        };
        let analysis = changed(
            |record| pushed(record, elsewhere),
            Proved,
            &["95 % interval"],
        );
        assert!(!analysis.verdict.reason.contains("busy"));
        // A generator that is the limit of the fix alone can only hide a part of the gain.
        let bound = |round: &mut Round| {
            if round.variant == SOLUTION {
                round.outcome.generator.cpu_share = Some(0.97);
            }
        };
        let words = ["at least 892 times better", "used 97 % of its CPU"];
        changed(|record| pushed(record, bound), Proved, &words);
    }
}

#[test]
fn a_busy_machine_never_refutes_and_is_named() {
    let short = |record: &mut Record| {
        busy(record, waited);
        solution_completes(record, &[3_200, 3_300, 3_400]);
    };
    let words = [
        "not decided: other programs took 83 % of the load generator's CPU in round 1 ",
        "Close them and run this again.",
        "below the claimed 300",
        "The fix looks right so far: peak calls in flight inside the database: 1,000, where the problem has 1.",
    ];
    changed(short, Inconclusive, &words);
    let silent = |record: &mut Record| {
        busy(record, waited);
        change(record, SATURATED, PROBLEM, |round| completes(round, 0));
    };
    changed(silent, Inconclusive, &["83 %", "nothing was answered"]);
    let late = |record: &mut Record| {
        busy(record, waited);
        record.rounds[4].outcome.errors = [("time_out".to_owned(), 12)].into();
    };
    changed(late, Inconclusive, &["83 %", "12 requests timed out"]);
    // Some users may come too late to be counted, but one call at a time is the fault.
    for (count, kind) in [(300.0, Inconclusive), (1.0, Refuted)] {
        let few = |record: &mut Record| {
            busy(record, waited);
            counts(record, SOLUTION, IN_FLIGHT, count);
        };
        changed(few, kind, &["root cause contradicts the claim"]);
    }
    // The generator limited the problem's own throughput.
    let both = |record: &mut Record| {
        busy(record, |round| {
            round.outcome.generator.cpu_share = Some(0.95);
        });
    };
    changed(
        both,
        Inconclusive,
        &["95 %", "the problem's limit, too", "more CPUs"],
    );
}

#[test]
fn where_nobody_reports_who_uses_the_cpus_nothing_is_refuted_by_speed() {
    let unknown = |round: &mut Round| {
        round.outcome.generator.waited_share = None;
        round.elsewhere_share = None;
    };
    let short = |record: &mut Record| {
        busy(record, unknown);
        solution_completes(record, &[3_200, 3_300, 3_400]);
    };
    let words = ["does not report who uses the CPUs", "below the claimed 300"];
    changed(short, Inconclusive, &words);
    changed(
        |record| busy(record, unknown),
        Proved,
        &["times better (95 %"],
    );
    let few = |record: &mut Record| {
        busy(record, unknown);
        counts(record, SOLUTION, IN_FLIGHT, 1.0);
    };
    changed(few, Refuted, &[]);
}

/// A disturbance below the rule's limit is named beside the figures.
#[test]
fn a_disturbance_is_named_where_a_run_cannot_tell() {
    let mut record = claims_at_least(900.0);
    solution_completes(&mut record, &[28_000, 28_900, 29_700]);
    busy(&mut record, |round| round.elsewhere_share = Some(0.34));
    let words = [
        "Other programs used 34 % of the machine's CPU time",
        "which may be why",
        "--triplets 12",
    ];
    judged(&record, Inconclusive, &words);
}

#[test]
fn a_prediction_of_one_pair_is_no_prediction() {
    let mut record = record();
    record.rounds.truncate(20);
    judged(&record, Inconclusive, &["`published`", "too few rounds"]);
}

/// Makes a record with a guardrail, judged in a proof.
fn guardrail(edit: impl FnOnce(&mut Claim)) -> Record {
    let mut record = record();
    claiming(&mut record, |claims| {
        let mut guardrail = claims[0].clone();
        guardrail.role = Role::Guardrail;
        guardrail.name = Some("threads of the process".to_owned());
        guardrail.quantity = Quantity::Counter("process_threads".to_owned());
        (guardrail.problem, guardrail.solution) = (None, Some(Bound::at_most(48.0)));
        edit(&mut guardrail);
        claims.push(guardrail);
    });
    for round in &mut record.rounds {
        round.readings.insert("process_threads".to_owned(), 20.0);
    }
    record
}

fn threads(record: &mut Record, number: f64) {
    counts(record, SOLUTION, "process_threads", number);
}

#[test]
fn a_guardrail_of_proofs_that_is_broken_is_inconclusive() {
    use course::measurement::claim::JudgedBy::{Check, Prove};
    judged(&guardrail(|_| ()), Proved, &[]);
    let words = ["threads of the process: 517 in the fix", "at most 48"];
    for (only, kind, words, judged_here) in [
        (None, Inconclusive, &words[..], 1),
        (Some(Prove), Inconclusive, &words, 1),
        (Some(Check), Proved, &[], 0),
    ] {
        let mut record = guardrail(|claim| claim.only = only);
        threads(&mut record, 517.0);
        let analysis = judged(&record, kind, words);
        assert_eq!(analysis.of(Role::Guardrail).count(), judged_here);
    }
}

#[test]
fn a_guardrail_is_left_out_only_where_it_is_not_reported_and_may_be() {
    let silence = |record: &mut Record| {
        for round in &mut record.rounds {
            round.readings.remove("process_threads");
        }
    };
    let of_many = |where_reported| {
        let mut record = guardrail(|claim| claim.where_reported = where_reported);
        threads(&mut record, 517.0);
        record
    };
    let unreported = ["did not report `process_threads`"];
    let mut optional = of_many(true);
    judged(&optional, Inconclusive, &["517"]);
    silence(&mut optional);
    judged(&optional, Proved, &[]);
    // If some rounds report it, the others must, too.
    let mut partly = of_many(true);
    partly.rounds[4].readings.remove("process_threads");
    judged(&partly, Invalid, &unreported);
    let mut needed = of_many(false);
    silence(&mut needed);
    judged(&needed, Invalid, &unreported);
}

#[test]
fn a_guardrail_may_be_about_what_a_fix_keeps() {
    let keeps = |at_least: f64| {
        guardrail(|claim| {
            claim.quantity = Quantity::Metric(LoadMetric::RequestsPerSecond);
            claim.name = None;
            (claim.solution, claim.ratio) = (None, Some(Bound::at_least(at_least)));
        })
    };
    judged(&keeps(0.9), Proved, &[]);
    let words = ["requests per second", "1,000 times"];
    judged(&keeps(1_000.0), Inconclusive, &words);
}

#[test]
fn a_further_effect_is_judged_by_its_worst_pair() {
    let further = |at_least: f64| {
        let mut record = record();
        claiming(&mut record, |claims| {
            claims.retain(|claim| claim.scenario() != PUBLISHED);
            let mut other = claims[1].clone();
            other.scenario = Some(PUBLISHED.to_owned());
            other.ratio = Some(Bound::at_least(at_least));
            claims.push(other);
        });
        // Two pairs, of which the second gains less: 262.5 times beside 265.
        record.rounds.truncate(22);
        completes(&mut record.rounds[20], 21_000);
        record
    };
    judged(&further(262.0), Proved, &[]);
    // Two pairs make no interval.
    let words = [
        "in the scenario `published`",
        "single rounds from 262",
        "at least 263 times",
    ];
    judged(&further(263.0), Inconclusive, &words);
    // Both ends have one unit.
    let mut uneven = further(262.0);
    completes(&mut uneven.rounds[20], 120);
    let words = ["(single rounds from 1.50 times to 265 times)"];
    judged(&uneven, Inconclusive, &words);
}

#[test]
fn a_further_effect_may_have_bounds_in_place_of_a_ratio() {
    let latency = |record: &mut Record, at_most: f64| {
        claiming(record, |claims| {
            let mut other = claims[1].clone();
            other.quantity = Quantity::Metric(LoadMetric::P50Ms);
            other.ratio = None;
            other.problem = Some(Bound::at_least(500.0));
            other.solution = Some(Bound::at_most(at_most));
            claims.push(other);
        });
    };
    let analysis = changed(|record| latency(record, 60.0), Proved, &[]);
    let finding = analysis.of(Role::Effect).last().unwrap();
    assert_eq!((finding.ratio, finding.holds), (None, Some(true)));
    let words = [
        "median latency: 53.",
        "ms in the fix, at most 40.0 ms was claimed",
    ];
    changed(|record| latency(record, 40.0), Inconclusive, &words);
}

#[test]
fn a_machine_that_cannot_show_it_is_told_so() {
    let regions = |record: &mut Record| record.chapter.conditions.numa_nodes_at_least = 2;
    changed(regions, Inconclusive, &["this machine", "NUMA nodes"]);
    let cpus = |record: &mut Record| record.chapter.conditions.cpus_at_least = 4;
    changed(cpus, Inconclusive, &["this machine", "4 CPUs"]);
    // If workers are the fault, the problem may see all CPUs that there are.
    let all_seen = |record: &mut Record| {
        let scenario = SATURATED.to_owned();
        record.chapter.law = Law::Workers { scenario };
        let alone = Round {
            purpose: Purpose::Law,
            ..record.effect_rounds()[0].clone()
        };
        record.rounds.push(alone);
        for round in &mut record.rounds {
            round.readings.insert(CPUS.to_owned(), 2.0);
        }
    };
    changed(all_seen, Inconclusive, &["sees as many CPUs"]);
}

#[test]
fn any_root_cause_that_contradicts_refutes() {
    for (variant, reading, words) in [
        (PROBLEM, 2.0, ["was 2 in the problem", "at most 1"]),
        (SOLUTION, 499.0, ["was 499 in the fix", "at least 500"]),
    ] {
        let edit = |record: &mut Record| counts(record, variant, IN_FLIGHT, reading);
        changed(edit, Refuted, &words);
    }
    // One round that breaks the limit is enough.
    let first = |record: &mut Record| {
        record.rounds[0].readings.insert(IN_FLIGHT.to_owned(), 3.0);
    };
    changed(first, Refuted, &["was 3"]);
    let mut second = guardrail(|claim| {
        claim.role = Role::RootCause;
        claim.problem = Some(Bound::at_least(10.0));
    });
    judged(&second, Proved, &[]);
    threads(&mut second, 517.0);
    let words = ["threads of the process was 517 in the fix"];
    judged(&second, Refuted, &words);
}

#[test]
fn a_root_cause_counted_apart_is_read_off_its_own_rounds() {
    let mut record = record();
    claiming(&mut record, |claims| {
        claims[0].scenario = Some("check".to_owned());
    });
    for (variant, peak) in [(PROBLEM, 1.0), (SOLUTION, 180.0)] {
        let outcome = outcome(200, 40, 2.0, 51.0);
        let own = round(Purpose::RootCause, variant, "check", peak, outcome);
        record.rounds.push(own);
    }
    // The counts of the effect's rounds do not matter to it.
    change(&mut record, SATURATED, SOLUTION, |round| {
        round.readings.clear();
    });
    let analysis = judged(&record, Proved, &["1 against 180"]);
    assert_eq!(analysis.root_cause().unwrap().users, 200);
    let own = &mut record.rounds.last_mut().unwrap().readings;
    own.insert(IN_FLIGHT.into(), 99.0);
    judged(&record, Refuted, &["was 99 in the fix", "at least 100"]);
}

#[test]
fn what_spoils_a_run_comes_before_what_the_figures_say() {
    let wrong = |record: &mut Record| {
        change(record, SATURATED, SOLUTION, |round| {
            completes(round, 60_000);
            round.outcome.wrong_answers = 60_000;
            round.readings.clear();
            round.outcome.generator.cpu_share = Some(1.0);
        });
    };
    changed(wrong, Invalid, &["wrong answers"]);
    let unoptimised = |record: &mut Record| {
        counts(record, PROBLEM, IN_FLIGHT, 500.0);
        record.environment.optimised = false;
    };
    changed(unoptimised, Invalid, &["optimised"]);
}

/// Claims a gain of at least `at_least`, if such a claim is accepted.
fn claim_at_least(record: &mut Record, at_least: f64) {
    let mut claims: Vec<Claim> = record.chapter.claims.clone().into();
    claims[1].ratio = Some(Bound::at_least(at_least));
    if let Ok(claims) = Claims::try_from(claims) {
        record.chapter.claims = claims;
    }
}

/// Puts nonsense into places chosen at random. Only a sound record may be proved, and nothing may panic or
/// print nonsense.
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
                5 => round.readings.values_mut().for_each(|one| *one = value),
                6 => round.readings.clear(),
                7 => round.outcome.errors = [("closed".to_owned(), 1)].into(),
                8 => round.variant = "exercise".into(),
                9 => drop(record.rounds.remove(index)),
                _ => claim_at_least(&mut record, value),
            }
        }
        let analysis = analyse(&record);
        let reason = &analysis.verdict.reason;
        let is_number = !reason.contains("NaN") && !reason.contains("inf");
        assert!(is_number, "{reason}");
        if analysis.verdict.kind == Proved {
            let effect = analysis.effect().unwrap();
            let (low, high) = effect.interval.unwrap();
            let claimed = effect.claim.ratio.unwrap().limit(effect.users);
            assert!(low >= claimed && high.is_finite(), "{reason}");
            let compared = record.compared(&record.effect_rounds());
            assert!(compared.iter().all(Option::is_some) && compared.len() >= 3);
            assert_eq!(analysis.root_cause().unwrap().holds, Some(true));
            let mut rounds = record.rounds.iter();
            assert!(rounds.all(|round| round.outcome.errors.is_empty()));
        }
    }
}
