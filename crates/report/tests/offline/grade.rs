//! What the learner reads after `check`.

use std::collections::BTreeMap;

use crate::support::{chapter, outcome};
use analysis::grade::{Grade, GradeKind, grade};
use measurement::{
    attempt::{Attempt, Observed, Trial},
    claim::Limit,
    outcome::Outcome,
};

use self::GradeKind::{Failed, Invalid, Passed};

fn observed(outcome: Outcome, in_flight: f64) -> Observed {
    Observed {
        database_records: None,
        afterwards: None,
        calls: Some(outcome.completed + 3),
        outcome,
        root_cause: Some(in_flight),
        limited: BTreeMap::new(),
        panics: Vec::new(),
        ended: false,
        throttled_s: None,
    }
}

fn unchanged() -> Observed {
    observed(outcome(200, 40, 2.0, 2_000.0), 1.0)
}

fn fixed() -> Observed {
    observed(outcome(200, 7_600, 2.0, 50.4), 200.0)
}

#[track_caller]
fn graded(edit: impl FnOnce(&mut Trial), kind: GradeKind, words: &[&str]) -> Grade {
    let mut trial = Trial {
        exercise: fixed(),
        problem: unchanged(),
        optimised: true,
    };
    edit(&mut trial);
    check(&Attempt::Ran(Box::new(trial)), kind, words)
}

#[track_caller]
fn check(attempt: &Attempt, kind: GradeKind, words: &[&str]) -> Grade {
    let grade = grade(&chapter(), attempt);
    println!("{:?}: {}", grade.kind, grade.reason);
    assert_eq!(grade.kind, kind, "{}", grade.reason);
    for word in words {
        assert!(
            grade.reason.contains(word),
            "{word:?} is not in: {}",
            grade.reason
        );
    }
    assert_eq!(grade.reason.lines().count(), 1, "{}", grade.reason);
    assert!(grade.reason.ends_with('.'), "{}", grade.reason);
    grade
}

#[test]
fn the_solution_passes() {
    let grade = graded(|_| (), Passed, &["190 times better", "200"]);
    assert!(grade.passed());
}

#[test]
fn the_exercise_as_shipped_fails_by_its_root_cause() {
    let grade = graded(
        |trial| trial.exercise = unchanged(),
        Failed,
        &["peak calls", ": 1,", "at least 180"],
    );
    assert!(!grade.passed());
}

#[test]
fn what_does_not_compile_shows_the_compilers_words() {
    let compiler = "error[E0382]: borrow of moved value".to_owned();
    let attempt = Attempt::DoesNotCompile {
        compiler: compiler.clone(),
    };
    let grade = check(&attempt, Failed, &["compile"]);
    assert_eq!(grade.detail, Some(compiler));
}

#[test]
fn what_does_not_start_is_told_from_what_hangs() {
    let ended = Attempt::DoesNotStart {
        words: "address in use".into(),
    };
    let grade = check(&ended, Failed, &["ended before it listened"]);
    assert_eq!(grade.detail.as_deref(), Some("address in use"));
    let hung = Attempt::DoesNotStart { words: "\n".into() };
    check(&hung, Failed, &["did not begin to listen"]);
}

#[test]
fn a_panic_is_shown() {
    let grade = graded(
        |trial| {
            trial.exercise.panics = vec!["panicked at src/exercise.rs:31".into()];
            trial.exercise.outcome = outcome(200, 0, 2.0, 50.0);
            trial.exercise.outcome.errors.insert("closed".into(), 900);
        },
        Failed,
        &["panics"],
    );
    assert!(grade.detail.unwrap().contains("exercise.rs:31"));
}

#[test]
fn a_server_that_ends_under_load_fails() {
    graded(
        |trial| trial.exercise.ended = true,
        Failed,
        &["ended while"],
    );
}

#[test]
fn a_deadlock_is_suspected() {
    graded(
        |trial| trial.exercise.outcome = outcome(200, 0, 2.0, 50.0),
        Failed,
        &["answered nothing in 2", "lock"],
    );
}

#[test]
fn a_wrong_answer_is_quoted() {
    graded(
        |trial| {
            trial.exercise.outcome.wrong_answers = 12;
            trial.exercise.outcome.first_wrong_answer = Some("0".into());
        },
        Failed,
        &["12 wrong answers", "\"0\""],
    );
}

#[test]
fn errors_are_named() {
    graded(
        |trial| trial.exercise.outcome.errors = [("status 500".to_owned(), 1)].into(),
        Failed,
        &["1 request failed", "status 500"],
    );
}

#[test]
fn answers_without_calls_are_no_cure() {
    graded(
        |trial| trial.exercise.calls = Some(7_599),
        Failed,
        &["7,600 answers", "7,599 calls"],
    );
    graded(|trial| trial.exercise.calls = Some(0), Failed, &["0 calls"]);
    graded(|trial| trial.exercise.calls = Some(7_600), Passed, &[]);
    graded(|trial| trial.exercise.calls = None, Passed, &[]);
}

#[test]
fn answers_before_their_call_could_end_are_no_cure() {
    graded(
        |trial| trial.exercise.outcome.latency.min_ms = 1.5,
        Failed,
        &["1.50 ms", "50.0 ms"],
    );
    graded(
        |trial| trial.exercise.outcome.latency.min_ms = f64::NAN,
        Failed,
        &["faster"],
    );
    graded(
        |trial| trial.exercise.outcome.latency.min_ms = 49.9,
        Passed,
        &[],
    );
}

#[test]
fn calls_that_overlap_too_little_are_no_cure() {
    graded(
        |trial| trial.exercise.root_cause = Some(179.0),
        Failed,
        &["179", "at least 180"],
    );
    graded(|trial| trial.exercise.root_cause = Some(180.0), Passed, &[]);
}

#[test]
fn a_gain_too_small_is_no_cure() {
    graded(
        |trial| trial.exercise.outcome = outcome(200, 3_960, 2.0, 100.0),
        Failed,
        &["99.0 times better", "100 times are needed"],
    );
    graded(
        |trial| trial.exercise.outcome = outcome(200, 4_000, 2.0, 100.0),
        Passed,
        &[],
    );
}

#[test]
fn runs_that_say_nothing_are_invalid() {
    graded(|trial| trial.optimised = false, Invalid, &["optimised"]);
    graded(
        |trial| trial.problem.outcome = outcome(200, 0, 2.0, 1.0),
        Invalid,
        &["problem", "nothing"],
    );
    graded(
        |trial| trial.exercise.throttled_s = Some(0.5),
        Invalid,
        &["exercise", "quota"],
    );
    graded(
        |trial| trial.problem.throttled_s = Some(0.5),
        Invalid,
        &["problem", "quota"],
    );
    graded(
        |trial| trial.exercise.outcome.generator.cpu_share = Some(0.99),
        Invalid,
        &["generator-bound"],
    );
    graded(
        |trial| trial.exercise.root_cause = None,
        Invalid,
        &["did not report"],
    );
    graded(
        |trial| trial.exercise.root_cause = Some(f64::NAN),
        Invalid,
        &["did not report"],
    );
    graded(
        |trial| trial.exercise.outcome.generator.users = 20,
        Invalid,
        &["20 users", "200"],
    );
}

#[test]
fn what_is_surely_wrong_comes_before_what_is_unsure() {
    graded(
        |trial| {
            trial.optimised = false;
            trial.exercise.outcome.wrong_answers = 1;
            trial.exercise.outcome.generator.cpu_share = Some(1.0);
        },
        Failed,
        &["1 wrong answer,"],
    );
}

#[test]
fn figures_that_contradict_each_other_never_pass() {
    for nonsense in [f64::NAN, f64::INFINITY, 1e12, -1.0] {
        graded(
            |trial| trial.exercise.outcome.requests_per_second = nonsense,
            Failed,
            &["damaged"],
        );
        graded(
            |trial| trial.problem.outcome.requests_per_second = nonsense,
            Invalid,
            &["damaged"],
        );
    }
}

#[test]
fn another_count_may_have_a_limit() {
    let mut chapter = chapter();
    chapter.check.limits = vec![Limit {
        name: "pieces of work at once".to_owned(),
        metric: "at_once".to_owned(),
        at_most: 1.0,
        where_told: false,
    }];
    for (reading, expected, words) in [
        (Some(64.0), Failed, "at once: 64, but at most 1 is needed"),
        (Some(1.0), Passed, "times better"),
        (Some(f64::NAN), Failed, "at once"),
        (None, Invalid, "did not report `at_once`"),
    ] {
        let mut exercise = fixed();
        exercise.limited = reading
            .map(|reading| ("at_once".to_owned(), reading))
            .into_iter()
            .collect();
        let trial = Trial {
            exercise,
            problem: unchanged(),
            optimised: true,
        };
        let grade = grade(&chapter, &Attempt::Ran(Box::new(trial)));
        assert_eq!(grade.kind, expected, "{}", grade.reason);
        assert!(grade.reason.contains(words), "{}", grade.reason);
    }
}

#[test]
fn a_generator_that_starved_says_nothing_against_an_edit() {
    let starves = |trial: &mut Trial, waited| {
        let generator = &mut trial.exercise.outcome.generator;
        generator.cpu_share = Some(0.02);
        generator.waited_share = Some(waited);
    };
    let slow = |trial: &mut Trial, waited| {
        trial.exercise.outcome = outcome(200, 400, 2.0, 900.0);
        starves(trial, waited);
    };
    graded(|trial| slow(trial, 0.4), Failed, &["times are needed"]);
    graded(
        |trial| slow(trial, 0.7),
        Invalid,
        &["waited for its CPU", "70 %"],
    );
    // With that against it, a gain is a gain.
    graded(|trial| starves(trial, 0.7), Passed, &[]);
}
