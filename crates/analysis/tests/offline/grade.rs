//! What the learner reads after `check`.

use crate::support::{chapter, claiming, outcome, record, round};
use analysis::grade::{Grade, GradeKind, grade};
use measurement::{
    attempt::{Attempt, Observed, Trial},
    chapter_file::{Afterwards, ChapterFile},
    claim::{Bound, Claim, EXERCISE, JudgedBy, Metric, PROBLEM, Quantity, Role},
    load::Exchange,
    outcome::Outcome,
    record::{Purpose, Round},
};

use self::GradeKind::{Failed, Invalid, Passed};

/// The counter of the chapter's root cause.
const IN_FLIGHT: &str = "database_calls_in_flight_peak";

fn observed(variant: &str, outcome: Outcome, in_flight: f64) -> Observed {
    Observed {
        calls: Some(outcome.completed + 3),
        round: round(Purpose::Claim, variant, "check", in_flight, outcome),
        database_records: None,
        afterwards: None,
        panics: Vec::new(),
        ended: false,
    }
}

fn unchanged(variant: &str) -> Observed {
    observed(variant, outcome(200, 40, 2.0, 2_000.0), 1.0)
}

fn fixed() -> Observed {
    observed(EXERCISE, outcome(200, 7_600, 2.0, 50.4), 200.0)
}

/// Counts so many at once in the exercise; nothing if it is `None`.
fn counts(trial: &mut Trial, counter: &str, reading: Option<f64>) {
    let readings = &mut trial.exercise.round.readings;
    match reading {
        Some(reading) => drop(readings.insert(counter.to_owned(), reading)),
        None => drop(readings.remove(counter)),
    }
}

fn trial() -> Trial {
    Trial {
        exercise: fixed(),
        problem: unchanged(PROBLEM),
        counted: Vec::new(),
        optimised: true,
    }
}

#[track_caller]
fn graded(edit: impl FnOnce(&mut Trial), kind: GradeKind, words: &[&str]) -> Grade {
    graded_by(&chapter(), edit, kind, words)
}

#[track_caller]
fn graded_by(
    chapter: &ChapterFile,
    edit: impl FnOnce(&mut Trial),
    kind: GradeKind,
    words: &[&str],
) -> Grade {
    let mut trial = trial();
    edit(&mut trial);
    check(chapter, &Attempt::Ran(Box::new(trial)), kind, words)
}

#[track_caller]
fn check(chapter: &ChapterFile, attempt: &Attempt, kind: GradeKind, words: &[&str]) -> Grade {
    let grade = grade(chapter, attempt);
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

/// Chapter 1 with a further claim, about what a fix may not cost.
fn with_guardrail(edit: impl FnOnce(&mut Claim)) -> ChapterFile {
    let mut record = record();
    claiming(&mut record, |claims| {
        let mut guardrail = claims[0].clone();
        guardrail.role = Role::Guardrail;
        guardrail.name = Some("pieces of work at once".to_owned());
        guardrail.quantity = Some(Quantity::Counter("at_once".to_owned()));
        (guardrail.problem, guardrail.solution) = (None, Some(Bound::at_most(1.0)));
        edit(&mut guardrail);
        claims.push(guardrail);
    });
    record.chapter
}

#[test]
fn the_solution_passes() {
    let grade = graded(|_| (), Passed, &["190 times better", "200"]);
    assert!(grade.passed());
}

#[test]
fn the_exercise_as_shipped_fails_by_its_root_cause() {
    let grade = graded(
        |trial| trial.exercise = unchanged(EXERCISE),
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
    let grade = check(&chapter(), &attempt, Failed, &["compile"]);
    assert_eq!(grade.detail, Some(compiler));
}

#[test]
fn what_does_not_start_is_told_from_what_hangs() {
    let ended = Attempt::DoesNotStart {
        stderr: "address in use".into(),
    };
    let grade = check(&chapter(), &ended, Failed, &["ended before it listened"]);
    assert_eq!(grade.detail.as_deref(), Some("address in use"));
    let hung = Attempt::DoesNotStart {
        stderr: "\n".into(),
    };
    check(&chapter(), &hung, Failed, &["did not begin to listen"]);
}

#[test]
fn a_panic_is_shown() {
    let grade = graded(
        |trial| {
            trial.exercise.panics = vec!["panicked at src/exercise.rs:31".into()];
            trial.exercise.round.outcome = outcome(200, 0, 2.0, 50.0);
            trial
                .exercise
                .round
                .outcome
                .errors
                .insert("closed".into(), 900);
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
        |trial| trial.exercise.round.outcome = outcome(200, 0, 2.0, 50.0),
        Failed,
        &["answered nothing in 2", "lock"],
    );
}

#[test]
fn a_wrong_answer_is_quoted() {
    graded(
        |trial| {
            trial.exercise.round.outcome.wrong_answers = 12;
            trial.exercise.round.outcome.first_wrong_answer = Some("0".into());
        },
        Failed,
        &["12 wrong answers", "\"0\""],
    );
}

#[test]
fn errors_are_named() {
    graded(
        |trial| trial.exercise.round.outcome.errors = [("status 500".to_owned(), 1)].into(),
        Failed,
        &["1 request failed", "status 500"],
    );
}

#[test]
fn answers_without_calls_are_no_fix() {
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
fn answers_before_their_call_could_end_are_no_fix() {
    graded(
        |trial| trial.exercise.round.outcome.latency.min_ms = 1.5,
        Failed,
        &["1.50 ms", "50.0 ms"],
    );
    graded(
        |trial| trial.exercise.round.outcome.latency.min_ms = f64::NAN,
        Failed,
        &["faster"],
    );
    graded(
        |trial| trial.exercise.round.outcome.latency.min_ms = 49.9,
        Passed,
        &[],
    );
}

#[test]
fn calls_that_overlap_too_little_are_no_fix() {
    graded(
        |trial| counts(trial, IN_FLIGHT, Some(179.0)),
        Failed,
        &["179", "at least 180"],
    );
    graded(|trial| counts(trial, IN_FLIGHT, Some(180.0)), Passed, &[]);
}

/// The chapter claims 300 times; an honest fix need only be no worse than the problem.
#[test]
fn a_gain_below_the_chapters_passes_and_a_loss_does_not() {
    for answers in [3_960, 60, 40, 32] {
        graded(
            |trial| trial.exercise.round.outcome = outcome(200, answers, 2.0, 100.0),
            Passed,
            &[],
        );
    }
    graded(
        |trial| trial.exercise.round.outcome = outcome(200, 31, 2.0, 100.0),
        Failed,
        &[
            "worse than the problem",
            "1.29 times worse",
            "80 %",
            "200, as it should be",
        ],
    );
    let mut lenient = chapter();
    lenient.check.no_worse_than = 0.25;
    graded_by(
        &lenient,
        |trial| trial.exercise.round.outcome = outcome(200, 31, 2.0, 100.0),
        Passed,
        &[],
    );
}

#[test]
fn runs_that_say_nothing_are_invalid() {
    graded(|trial| trial.optimised = false, Invalid, &["optimised"]);
    graded(
        |trial| trial.problem.round.outcome = outcome(200, 0, 2.0, 1.0),
        Invalid,
        &["problem", "nothing"],
    );
    graded(
        |trial| trial.exercise.round.throttled_s = Some(0.5),
        Invalid,
        &["exercise", "quota"],
    );
    graded(
        |trial| trial.problem.round.throttled_s = Some(0.5),
        Invalid,
        &["problem", "quota"],
    );
    graded(
        |trial| trial.exercise.round.outcome.generator.cpu_share = Some(0.99),
        Invalid,
        &["generator-bound"],
    );
    graded(
        |trial| counts(trial, IN_FLIGHT, None),
        Invalid,
        &["did not report"],
    );
    graded(
        |trial| counts(trial, IN_FLIGHT, Some(f64::NAN)),
        Invalid,
        &["did not report"],
    );
    graded(
        |trial| trial.exercise.round.outcome.generator.users = 20,
        Invalid,
        &["20 users", "200"],
    );
}

#[test]
fn what_is_surely_wrong_comes_before_what_is_unsure() {
    graded(
        |trial| {
            trial.optimised = false;
            trial.exercise.round.outcome.wrong_answers = 1;
            trial.exercise.round.outcome.generator.cpu_share = Some(1.0);
        },
        Failed,
        &["1 wrong answer,"],
    );
}

#[test]
fn figures_that_contradict_each_other_never_pass() {
    for nonsense in [f64::NAN, f64::INFINITY, 1e12, -1.0] {
        graded(
            |trial| trial.exercise.round.outcome.requests_per_second = nonsense,
            Failed,
            &["damaged"],
        );
        graded(
            |trial| trial.problem.round.outcome.requests_per_second = nonsense,
            Invalid,
            &["damaged"],
        );
    }
}

#[test]
fn another_count_may_have_a_limit() {
    let chapter = with_guardrail(|_| ());
    for (reading, expected, words) in [
        (Some(64.0), Failed, "at once: 64, but at most 1 is needed"),
        (Some(1.0), Passed, "times better"),
        (Some(f64::NAN), Invalid, "did not report `at_once`"),
        (None, Invalid, "did not report `at_once`"),
    ] {
        let edit = |trial: &mut Trial| counts(trial, "at_once", reading);
        graded_by(&chapter, edit, expected, &[words]);
    }
}

#[test]
fn a_count_that_not_every_system_reports_is_left_out_there() {
    let chapter = with_guardrail(|claim| claim.where_reported = true);
    for (reading, expected) in [(Some(64.0), Failed), (Some(1.0), Passed), (None, Passed)] {
        let edit = |trial: &mut Trial| counts(trial, "at_once", reading);
        graded_by(&chapter, edit, expected, &[]);
    }
    // It is reported, and is no number.
    let odd = |trial: &mut Trial| counts(trial, "at_once", Some(f64::NAN));
    graded_by(&chapter, odd, Invalid, &["did not report `at_once`"]);
}

#[test]
fn a_claim_is_judged_by_whom_it_names() {
    let of = |only| with_guardrail(|claim| claim.only = only);
    let too_many = |trial: &mut Trial| counts(trial, "at_once", Some(64.0));
    let found = |grade: &Grade| {
        let mut findings = grade.findings.iter();
        findings.any(|finding| finding.claim.role == Role::Guardrail)
    };
    for only in [None, Some(JudgedBy::Check)] {
        let grade = graded_by(&of(only), too_many, Failed, &["at once: 64"]);
        assert!(found(&grade));
    }
    let grade = graded_by(&of(Some(JudgedBy::Prove)), too_many, Passed, &[]);
    assert!(!found(&grade));
}

#[test]
fn more_than_any_honest_fix_can_gain_is_no_fix() {
    let chapter = with_guardrail(|claim| {
        claim.quantity = Some(Quantity::Metric(Metric::RequestsPerSecond));
        claim.name = None;
        (claim.solution, claim.ratio) = (None, Some(Bound::at_most(189.0)));
    });
    let words = [
        "190 times better",
        "no honest fix can give more than 189 times",
    ];
    let grade = graded_by(&chapter, |_| (), Failed, &words);
    assert!(!grade.by_speed);
}

#[test]
fn a_problem_without_its_fault_excuses_nobody_where_every_machine_shows_it() {
    let sound = |trial: &mut Trial| {
        let readings = &mut trial.problem.round.readings;
        readings.insert(IN_FLIGHT.to_owned(), 200.0);
    };
    graded(sound, Passed, &[]);
}

/// Only a comparison of speeds is worth repeating.
#[test]
fn a_failure_says_whether_a_busy_machine_can_have_caused_it() {
    let slow = |trial: &mut Trial| trial.exercise.round.outcome = outcome(200, 20, 2.0, 900.0);
    assert!(graded(slow, Failed, &["worse than the problem"]).by_speed);
    let keeps = with_guardrail(|claim| {
        claim.quantity = Some(Quantity::Metric(Metric::RequestsPerSecond));
        claim.name = None;
        (claim.solution, claim.ratio) = (None, Some(Bound::at_least(0.9)));
    });
    let slower = |trial: &mut Trial| trial.exercise.round.outcome = outcome(200, 34, 2.0, 900.0);
    assert!(graded_by(&keeps, slower, Failed, &["90 %"]).by_speed);
    let by_count = |trial: &mut Trial| {
        slow(trial);
        counts(trial, IN_FLIGHT, Some(1.0));
    };
    assert!(!graded(by_count, Failed, &["at least 180"]).by_speed);
    let by_contract = |trial: &mut Trial| {
        slow(trial);
        trial.exercise.calls = Some(0);
    };
    assert!(!graded(by_contract, Failed, &["0 calls"]).by_speed);
    assert!(!graded(|_| (), Passed, &[]).by_speed);
}

/// Skipping the call is so fast that the generator has nothing left: that is no excuse.
#[test]
fn the_contract_is_judged_before_the_machine() {
    let cheats = |trial: &mut Trial| {
        let exercise = &mut trial.exercise;
        exercise.round.outcome = outcome(200, 60_000, 2.0, 1.2);
        exercise.round.outcome.generator.cpu_share = Some(0.99);
        exercise.round.throttled_s = Some(0.5);
        exercise.calls = Some(0);
        trial.optimised = false;
    };
    let grade = graded(cheats, Failed, &["60,000 answers", "0 calls"]);
    let broken = [
        "the work is done for every answer",
        "every answer waits for its call",
    ];
    assert_eq!(grade.contract.broken, broken);
    assert!(!grade.by_speed);
    // The same speed with every call made: the generator is to blame.
    let honest = |trial: &mut Trial| {
        trial.exercise.round.outcome.generator.cpu_share = Some(0.99);
    };
    let grade = graded(honest, Invalid, &["generator-bound"]);
    assert_eq!(grade.contract.broken, [""; 0]);
}

#[test]
fn the_contract_says_what_was_looked_at() {
    let passed = graded(|_| (), Passed, &[]);
    let held = [
        "it compiles",
        "it listens",
        "no panic",
        "the server stays up",
        "right answers to all requests",
        "the work is done for every answer",
        "every answer waits for its call",
    ];
    assert_eq!(passed.contract.held, held);
    assert_eq!(passed.contract.broken, [""; 0]);
    let hung = Attempt::DoesNotStart {
        stderr: String::new(),
    };
    let hung = grade(&chapter(), &hung).contract;
    assert_eq!(
        (hung.held, hung.broken),
        (
            vec!["it compiles".to_owned()],
            vec!["it listens".to_owned()]
        )
    );
}

#[test]
fn a_write_that_was_answered_was_made() {
    let mut chapter = chapter();
    chapter.afterwards = Some(Afterwards {
        path: "/topics/87".to_owned(),
    });
    chapter.write = Some(Exchange::get("/subscribe", "subscribed"));
    let writes = |trial: &mut Trial, recorded, left: &str| {
        trial.exercise.round.outcome.writes = 300;
        trial.exercise.database_records = Some(recorded);
        trial.exercise.afterwards = Some(left.to_owned());
        trial.problem.afterwards = Some("300".to_owned());
    };
    let grade = graded_by(&chapter, |trial| writes(trial, 300, "300"), Passed, &[]);
    for part in ["every write reaches the database", "no write is lost"] {
        assert!(grade.contract.held.iter().any(|held| held == part));
    }
    let words = ["300 writes", "recorded 299"];
    graded_by(&chapter, |trial| writes(trial, 299, "300"), Failed, &words);
    let words = ["\"12\"", "\"300\"", "/topics/87", "must not get lost"];
    graded_by(&chapter, |trial| writes(trial, 300, "12"), Failed, &words);
}

/// A root cause that is counted on another build, or in another scenario, has a round of its own.
#[test]
fn a_root_cause_counted_apart_is_read_off_its_own_round() {
    let mut record = record();
    claiming(&mut record, |claims| {
        claims[0].scenario = Some("profiled".to_owned());
        claims[0].features = vec!["allocations".to_owned()];
    });
    let apart = |in_flight| -> Vec<Round> {
        let outcome = outcome(1_000, 12_000, 2.0, 51.0);
        vec![round(
            Purpose::RootCause,
            EXERCISE,
            "profiled",
            in_flight,
            outcome,
        )]
    };
    // A thousand users there, whatever the round beside the problem counts.
    for (in_flight, expected, words) in [
        (900.0, Passed, "900 (at least 900 is needed)"),
        (899.0, Failed, "899, but at least 900"),
    ] {
        let edit = |trial: &mut Trial| {
            counts(trial, IN_FLIGHT, Some(3.0));
            trial.counted = apart(in_flight);
        };
        let grade = graded_by(&record.chapter, edit, expected, &[words]);
        let measured_in = |role| {
            let mut findings = grade.findings.iter();
            let found = findings.find(|finding| finding.claim.role == role).unwrap();
            (found.claim.scenario().to_owned(), found.users)
        };
        assert_eq!(measured_in(Role::RootCause), ("profiled".to_owned(), 1_000));
        assert_eq!(measured_in(Role::Effect), ("check".to_owned(), 200));
    }
    let silent = |trial: &mut Trial| {
        trial.counted = apart(900.0);
        trial.counted[0].readings.clear();
    };
    graded_by(&record.chapter, silent, Invalid, &["did not report"]);
}

#[test]
fn a_generator_that_starved_says_nothing_against_an_edit() {
    let starves = |trial: &mut Trial, waited| {
        let generator = &mut trial.exercise.round.outcome.generator;
        generator.cpu_share = Some(0.02);
        generator.waited_share = Some(waited);
    };
    let slow = |trial: &mut Trial, waited| {
        trial.exercise.round.outcome = outcome(200, 20, 2.0, 900.0);
        starves(trial, waited);
    };
    graded(|trial| slow(trial, 0.4), Failed, &["are needed"]);
    graded(
        |trial| slow(trial, 0.7),
        Invalid,
        &["waited for its CPU", "70 %"],
    );
    // With that against it, what is no worse is no worse.
    graded(|trial| starves(trial, 0.7), Passed, &[]);
}
