//! A claim about how many CPUs a service uses: a prediction from what was counted, and machines on
//! which there is nothing to see.

use crate::grade::observed;
use crate::support::{outcome, record, round};
use analysis::{
    grade::{GradeKind, grade},
    statistics::{Side, triplets},
    verdict::{Analysis, VerdictKind, analyse},
};
use measurement::{
    attempt::{Attempt, Trial},
    chapter_file::ChapterFile,
    claim::{EXERCISE, PROBLEM, Role, SOLUTION},
    record::{Purpose, Record, Round},
};

const CHAPTER_6: &str = include_str!("../../../../chapters/6-processor-group-limit/chapter.toml");

fn chapter() -> ChapterFile {
    ChapterFile::parse(CHAPTER_6, "chapter.toml", 2).unwrap()
}

/// A round on so many of `usable` CPUs, each of which answers 100 requests per second.
fn worked(purpose: Purpose, variant: &str, cpus: u32, usable: u32, per_second: f64) -> Round {
    let users = chapter().effect_scenario().users;
    // Small and never negative.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let answers = (3.0 * per_second) as u64;
    let outcome = outcome(users, answers, 3.0, 30.0);
    let mut round = round(purpose, variant, "saturated", 0.0, outcome);
    let share = f64::from(cpus) / f64::from(usable);
    round.readings = [
        ("workers_match_cpus".to_owned(), share),
        ("scan_cpus".to_owned(), cpus.into()),
        ("scan_workers".to_owned(), cpus.into()),
    ]
    .into();
    round.server_cpu_s = Some(3.0 * f64::from(cpus));
    round
}

/// A run in which the problem worked on so many CPUs and the solution on two. Two problems side by
/// side answer 185 requests per second.
fn run(few: u32, few_per_second: f64, many_per_second: f64) -> Record {
    let mut record = record();
    record.chapter = chapter();
    record.profiles.clear();
    let solution = |purpose| worked(purpose, SOLUTION, 2, 2, many_per_second);
    record.rounds = triplets(6)
        .flatten()
        .map(|side| match side {
            Side::Problem => worked(Purpose::Claim, PROBLEM, few, 2, few_per_second),
            Side::Fix => solution(Purpose::Claim),
            Side::Again => solution(Purpose::Equal),
        })
        .chain([PROBLEM, SOLUTION].map(|variant| Round {
            scenario: "side-by-side".to_owned(),
            ..worked(Purpose::Law, variant, 2, 2, 185.0)
        }))
        .chain([PROBLEM, SOLUTION].map(|variant| Round {
            scenario: "one-cpu".to_owned(),
            ..worked(Purpose::RootCause, variant, 1, 1, 100.0)
        }))
        .collect();
    record
}

#[track_caller]
fn judged(record: &Record, kind: VerdictKind, words: &str) -> Analysis {
    let analysis = analyse(record);
    let reason = &analysis.verdict.reason;
    println!("{}: {reason}", analysis.verdict.kind);
    assert_eq!(analysis.verdict.kind, kind, "{reason}");
    assert!(reason.contains(words), "{words:?} is not in: {reason}");
    analysis
}

#[test]
fn as_many_more_answers_as_cpus_prove_it_and_too_small_a_gain_does_not() {
    judged(&run(1, 100.0, 196.0), VerdictKind::Proved, "0.5 against 1");
    let small = run(1, 100.0, 140.0);
    judged(&small, VerdictKind::Refuted, "below the claimed 1.5");
}

#[test]
fn what_problems_answer_side_by_side_is_what_the_fix_may_gain() {
    let analysis = judged(&run(1, 100.0, 185.0), VerdictKind::Proved, "1.85");
    let law = analysis.of(Role::Prediction).next().unwrap();
    assert!((law.ratio.unwrap() - 1.85).abs() < 1e-9, "{law:?}");
}

#[test]
fn a_machine_on_which_the_problem_sees_all_cannot_show_it() {
    let equal = run(2, 196.0, 196.0);
    judged(&equal, VerdictKind::Inconclusive, "sees as many CPUs");
}

#[test]
fn an_exercise_cannot_be_graded_where_the_problem_has_no_fault() {
    let users = chapter().scenario("check").unwrap().users;
    let observed = |variant: &str, answers, ms, share| {
        let outcome = outcome(users, answers, 2.0, ms);
        observed(variant, ("workers_match_cpus", share), outcome)
    };
    for (problem, kind, words) in [
        (0.5, GradeKind::Passed, "1.9"),
        (1.0, GradeKind::Invalid, "cannot show the fault"),
    ] {
        let trial = Trial {
            tests: Vec::new(),
            exercise: observed(EXERCISE, 380, 30.0, 1.0),
            problem: observed(PROBLEM, 200, 60.0, problem),
            counted: Vec::new(),
            optimised: true,
        };
        let grade = grade(&chapter(), &Attempt::Ran(Box::new(trial)));
        assert_eq!(grade.kind, kind, "{}", grade.reason);
        assert!(grade.reason.contains(words), "{}", grade.reason);
    }
}
