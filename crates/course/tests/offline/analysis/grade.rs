//! Grades, as the learner reads them after `check`.

use crate::analysis::verdict::completes;
use crate::support::{chapter, claiming, outcome, record, round};
use course::analysis::grade::{Evidence, Grade, GradeKind, grade};
use course::measurement::{
    attempt::{Attempt, Failure, Observed, Tested, Trial, Wait},
    chapter_file::ChapterFile,
    claim::{Bound, Claim, EXERCISE, JudgedBy, LoadMetric, PROBLEM, Quantity, Role},
    law::Law,
    record::Purpose,
};
use engine::outcome::Outcome;

use self::GradeKind::{Failed, Invalid, Passed};

/// The counter of the chapter's root cause.
const IN_FLIGHT: &str = "database_calls_in_flight_peak";

/// Makes the observation of a variant in a check, with this reading.
fn observed(variant: &str, reading: f64, outcome: Outcome) -> Observed {
    Observed {
        round: round(Purpose::Claim, variant, "check", reading, outcome),
        panics: Vec::new(),
        ended: None,
        is_stuck: false,
    }
}

/// Sets the exercise's reading of a counter; `None` removes it.
fn counts(trial: &mut Trial, counter: &str, reading: Option<f64>) {
    let readings = &mut trial.exercise.round.readings;
    match reading {
        Some(reading) => drop(readings.insert(counter.to_owned(), reading)),
        None => drop(readings.remove(counter)),
    }
}

/// Returns the exercise's outcome at the generator.
fn seen(trial: &mut Trial) -> &mut Outcome {
    &mut trial.exercise.round.outcome
}

/// Gives the exercise this number of answers in two seconds, each after `ms` milliseconds.
fn answers(trial: &mut Trial, completed: u64, ms: f64) {
    *seen(trial) = outcome(200, completed, 2.0, ms);
}

#[track_caller]
fn graded(edit: impl FnOnce(&mut Trial), kind: GradeKind, words: &[&str]) -> Grade {
    graded_by(&chapter(), edit, kind, words)
}

#[track_caller]
fn fails(edit: impl FnOnce(&mut Trial), words: &[&str]) -> Grade {
    graded(edit, Failed, words)
}

#[track_caller]
fn passes(edit: impl FnOnce(&mut Trial)) -> Grade {
    graded(edit, Passed, &[])
}

#[track_caller]
fn is_invalid(edit: impl FnOnce(&mut Trial), words: &[&str]) -> Grade {
    graded(edit, Invalid, words)
}

/// Grades the solution's run beside the problem's, after an edit.
#[track_caller]
fn graded_by(
    chapter: &ChapterFile,
    edit: impl FnOnce(&mut Trial),
    kind: GradeKind,
    words: &[&str],
) -> Grade {
    let mut trial = Trial {
        tests: Vec::new(),
        exercise: observed(EXERCISE, 200.0, outcome(200, 7_600, 2.0, 50.4)),
        problem: observed(PROBLEM, 1.0, outcome(200, 40, 2.0, 2_000.0)),
        counted: Vec::new(),
        optimised: true,
    };
    edit(&mut trial);
    check(chapter, &Attempt::Ran(Box::new(trial)), kind, words)
}

#[track_caller]
fn check(chapter: &ChapterFile, attempt: &Attempt, kind: GradeKind, words: &[&str]) -> Grade {
    let grade = grade(chapter, attempt);
    let reason = &grade.reason;
    println!("{:?}: {reason}", grade.kind);
    assert_eq!(grade.kind, kind, "{reason}");
    for word in words {
        assert!(reason.contains(word), "{word:?} is not in: {reason}");
    }
    assert_eq!(reason.lines().count(), 1, "{reason}");
    assert!(reason.ends_with('.'), "{reason}");
    grade
}

/// Makes chapter 1 with a guardrail besides.
fn with_guardrail(edit: impl FnOnce(&mut Claim)) -> ChapterFile {
    let mut record = record();
    claiming(&mut record, |claims| {
        let mut guardrail = claims[0].clone();
        guardrail.role = Role::Guardrail;
        guardrail.name = Some("pieces of work at once".to_owned());
        guardrail.quantity = Quantity::Counter("at_once".to_owned());
        (guardrail.problem, guardrail.solution) = (None, Some(Bound::at_most(1.0)));
        edit(&mut guardrail);
        claims.push(guardrail);
    });
    record.chapter
}

/// Makes chapter 1 with a guardrail on throughput, as a ratio to the problem's.
fn keeping(throughput: Bound) -> ChapterFile {
    with_guardrail(|claim| {
        claim.quantity = Quantity::Metric(LoadMetric::RequestsPerSecond);
        (claim.name, claim.solution, claim.ratio) = (None, None, Some(throughput));
    })
}

#[test]
fn the_solution_passes_and_the_contract_says_what_was_looked_at() {
    let passed = graded(|_| (), Passed, &["190 times better", "200"]);
    let held = [
        "it compiles",
        "it listens",
        "no panic",
        "the server stays up",
        "right answers to all requests",
    ];
    assert_eq!(passed.contract.held, held);
    assert_eq!(passed.contract.broken, [""; 0]);
}

#[test]
fn what_does_not_compile_or_start_shows_who_said_why() {
    let refused = Grade::uncompiled("E0382".to_owned());
    assert_eq!(refused.kind, Failed);
    assert_eq!(refused.contract.broken, ["it compiles"]);
    assert!(refused.reason.contains("compile"), "{}", refused.reason);
    assert_eq!(refused.detail.as_deref(), Some("E0382"));
    let ended = |stderr: &str| Attempt::EndsAtOnce {
        status: "exit status: 0".to_owned(),
        stderr: stderr.to_owned(),
    };
    let hung = |said: &str| Attempt::DoesNotListen {
        said: said.to_owned(),
        wait: Wait::default(),
    };
    for (attempt, words, detail) in [
        (
            ended("in use"),
            "before it listened (exit status: 0); the end of",
            Some("in use"),
        ),
        (ended("\n"), "it may return or exit before it serves", None),
        (hung("retry"), "did not begin to listen", Some("retry")),
        (hung(""), "did not begin to listen", None),
    ] {
        let grade = check(&chapter(), &attempt, Failed, &[words]);
        assert_eq!(grade.detail.as_deref(), detail);
    }
    let contract = grade(&chapter(), &hung("")).contract;
    assert_eq!(contract.held, ["it compiles"]);
    assert_eq!(contract.broken, ["it listens"]);
}

#[test]
fn a_panic_is_shown() {
    let panics = |trial: &mut Trial| {
        trial.exercise.panics = vec!["panicked at src/exercise.rs:31".into()];
        answers(trial, 0, 50.0);
        seen(trial).errors.insert("closed".into(), 900);
    };
    let grade = fails(panics, &["panics"]);
    assert!(grade.detail.unwrap().contains("exercise.rs:31"));
}

#[test]
fn a_server_that_answers_wrongly_or_not_at_all_fails() {
    fails(
        |trial| trial.exercise.ended = Some(": it asked for too much".to_owned()),
        &["ended while it was under load: it asked for too much."],
    );
    fails(
        |trial| answers(trial, 0, 50.0),
        &["answered nothing in 2", "lock"],
    );
    let wrong = |trial: &mut Trial| {
        seen(trial).wrong_answers = 12;
        seen(trial).first_wrong_answer = Some("0".into());
    };
    fails(wrong, &["12 wrong answers", "\"0\""]);
    let refuses = |trial: &mut Trial| seen(trial).errors = [("status 500".to_owned(), 1)].into();
    fails(refuses, &["1 request failed", "status 500"]);
}

/// The chapter claims 300 times, but an honest fix may gain less.
#[test]
fn a_gain_below_the_chapters_passes_and_a_loss_does_not() {
    let mut lenient = chapter();
    lenient.check.effect_at_least = 0.8;
    for completed in [3_960, 60, 40, 32] {
        let completes = |trial: &mut Trial| answers(trial, completed, 100.0);
        graded_by(&lenient, completes, Passed, &[]);
    }
    let slower = |trial: &mut Trial| answers(trial, 31, 100.0);
    let worse = [
        "worse than the problem",
        "15.5, where the problem has 20.0 (1.29 times worse)",
        "80 %",
        "200, as it should be",
    ];
    graded_by(&lenient, slower, Failed, &worse);
    lenient.check.effect_at_least = 0.25;
    graded_by(&lenient, slower, Passed, &[]);
}

/// Useless calls raise the count, and requests wait as before.
#[test]
fn a_count_that_is_raised_without_a_gain_is_no_fix() {
    let hardly = [
        "hardly better",
        "1.00 times",
        "at least 10.0 times",
        "200, as",
    ];
    assert!(fails(|trial| answers(trial, 40, 2_000.0), &hardly).by_speed);
    fails(
        |trial| answers(trial, 20, 4_000.0),
        &["worse than the problem"],
    );
    passes(|trial| answers(trial, 401, 200.0));
}

/// One sentence for each cause: untouched, another lock, half of the way.
#[test]
fn a_missed_count_says_what_it_means_and_what_else_was_seen() {
    let missed = "Requests still wait for each other's calls";
    let needed = ". At least 100 (50 % of the 200 users) are needed. Requests still wait";
    let same = |trial: &mut Trial| {
        answers(trial, 40, 2_000.0);
        counts(trial, IN_FLIGHT, Some(1.0));
    };
    let as_before = "peak calls in flight inside the database: 1, as in the problem.";
    let untouched = fails(same, &[as_before, needed, missed]);
    assert!(!untouched.reason.contains("worse"), "{}", untouched.reason);
    let slower = |trial: &mut Trial| {
        answers(trial, 4, 2_000.0);
        counts(trial, IN_FLIGHT, Some(1.0));
    };
    fails(slower, &[missed, "2.00, where the problem has 20.0"]);
    let half = |trial: &mut Trial| counts(trial, IN_FLIGHT, Some(64.0));
    let half = fails(half, &["64; the problem has 1.", missed]);
    assert!(!half.reason.contains("as in"), "{}", half.reason);
}

#[test]
fn runs_that_say_nothing_are_invalid() {
    is_invalid(|trial| trial.optimised = false, &["optimised"]);
    let silent = |trial: &mut Trial| completes(&mut trial.problem.round, 0);
    is_invalid(silent, &["problem", "nothing"]);
    let throttled = |trial: &mut Trial| trial.exercise.round.throttled_s = Some(0.5);
    is_invalid(throttled, &["exercise", "quota"]);
    let throttled = |trial: &mut Trial| trial.problem.round.throttled_s = Some(0.5);
    is_invalid(throttled, &["problem", "quota"]);
    for reading in [None, Some(f64::NAN)] {
        is_invalid(
            |trial| counts(trial, IN_FLIGHT, reading),
            &["did not report"],
        );
    }
    is_invalid(
        |trial| seen(trial).generator.users = 20,
        &["20 users", "200"],
    );
}

#[test]
fn another_count_may_have_a_limit_that_may_be_left_out_where_nobody_reports_it() {
    let unreported = "did not report `at_once`";
    for (where_reported, reading, expected, words) in [
        (false, Some(64.0), Failed, "At most 1 is allowed"),
        (false, Some(1.0), Passed, "times better"),
        (false, None, Invalid, unreported),
        (true, Some(64.0), Failed, ""),
        (true, None, Passed, ""),
        // It is reported, but it is not a number.
        (true, Some(f64::NAN), Invalid, unreported),
    ] {
        let chapter = with_guardrail(|claim| claim.where_reported = where_reported);
        let edit = |trial: &mut Trial| counts(trial, "at_once", reading);
        graded_by(&chapter, edit, expected, &[words]);
    }
}

#[test]
fn a_claim_is_judged_by_whom_it_names() {
    for (only, expected, words) in [
        (None, Failed, "at once: 64"),
        (Some(JudgedBy::Check), Failed, "at once: 64"),
        (Some(JudgedBy::Prove), Passed, ""),
    ] {
        let chapter = with_guardrail(|claim| claim.only = only);
        let too_many = |trial: &mut Trial| counts(trial, "at_once", Some(64.0));
        let grade = graded_by(&chapter, too_many, expected, &[words]);
        let mut findings = grade.findings.iter();
        let found = findings.any(|finding| finding.claim.role == Role::Guardrail);
        assert_eq!(found, expected == Failed);
    }
}

#[test]
fn a_problem_without_its_fault_excuses_an_edit_only_where_that_hangs_on_the_machine() {
    let faultless = |trial: &mut Trial| {
        let readings = &mut trial.problem.round.readings;
        readings.insert(IN_FLIGHT.to_owned(), 200.0);
    };
    passes(faultless);
    let mut of_cpus = chapter();
    let scenario = "saturated".to_owned();
    of_cpus.law = Law::Workers { scenario };
    graded_by(&of_cpus, |_| (), Passed, &[]);
    graded_by(&of_cpus, faultless, Invalid, &["cannot show the fault"]);
}

/// Only a comparison of speeds is worth repeating.
#[test]
fn a_failure_says_whether_a_busy_machine_can_have_caused_it() {
    let slow = |trial: &mut Trial| answers(trial, 20, 900.0);
    assert!(fails(slow, &["worse than the problem"]).by_speed);
    let slower = |trial: &mut Trial| answers(trial, 34, 900.0);
    let mut kept = keeping(Bound::at_least(0.9));
    kept.check.effect_at_least = 0.8;
    assert!(graded_by(&kept, slower, Failed, &["90 %"]).by_speed);
    let by_count = |trial: &mut Trial| {
        slow(trial);
        counts(trial, IN_FLIGHT, Some(1.0));
    };
    assert!(!fails(by_count, &["At least 100"]).by_speed);
    assert!(!passes(|_| ()).by_speed);
}

/// A check gathers evidence only as long as the grade so far calls for more.
#[test]
fn a_grade_wants_more_evidence_until_it_stands() {
    let kept = grade(&chapter(), &Attempt::Tested { tests: Vec::new() });
    assert_eq!(kept.wants_after(Evidence::Start), Some(Evidence::Contract));
    assert_eq!(kept.wants_after(Evidence::Contract), Some(Evidence::Load));
    for wait in [QUIET, BUSY] {
        let said = String::new();
        let hung = grade(&chapter(), &Attempt::DoesNotListen { said, wait });
        assert_eq!(hung.wants_after(Evidence::Start), None);
    }
    let tests = vec![tested("all are kept", false, Some(("one is not", None)))];
    let broken = grade(&chapter(), &Attempt::Tested { tests });
    assert_eq!(broken.wants_after(Evidence::Contract), None);
    // Only a comparison of speeds is worth repeating, and only once.
    let slow = fails(|trial| answers(trial, 20, 900.0), &[]);
    assert_eq!(slow.wants_after(Evidence::Load), Some(Evidence::LoadAgain));
    assert_eq!(slow.wants_after(Evidence::LoadAgain), None);
    let few = fails(|trial| counts(trial, IN_FLIGHT, Some(1.0)), &[]);
    assert_eq!(few.wants_after(Evidence::Load), None);
    let passed = passes(|_| ());
    for last in [Evidence::Load, Evidence::LoadAgain] {
        assert_eq!(passed.wants_after(last), Some(Evidence::TestsOfAFix));
    }
    assert_eq!(passed.wants_after(Evidence::TestsOfAFix), None);
}

/// Wrong answers may come so fast that the generator has no CPU time left. That is no excuse.
#[test]
fn the_contract_is_judged_before_the_machine() {
    let wrong = |trial: &mut Trial| {
        seen(trial).wrong_answers = 60_000;
        seen(trial).generator.cpu_share = Some(0.99);
        trial.exercise.round.throttled_s = Some(0.5);
        trial.optimised = false;
    };
    let grade = fails(wrong, &["60,000 wrong answers"]);
    assert_eq!(grade.contract.broken, ["right answers to all requests"]);
    assert!(!grade.by_speed);
    // With right answers, the grade is no worse than the figures. If these look slow, the generator may be to
    // blame.
    let bound = |trial: &mut Trial| seen(trial).generator.cpu_share = Some(0.99);
    passes(bound);
    let slow = |trial: &mut Trial| {
        answers(trial, 40, 2_000.0);
        bound(trial);
    };
    let grade = is_invalid(slow, &["used 99 % of its CPU", "hardly better"]);
    assert_eq!(grade.contract.broken, [""; 0]);
}

fn tested(name: &str, of_a_fix: bool, failure: Option<(&str, Option<&str>)>) -> Tested {
    Tested {
        name: name.to_owned(),
        of_a_fix,
        failure: failure.map(|(sentence, panic)| Failure {
            sentence: sentence.to_owned(),
            panic: panic.map(str::to_owned),
            wait: None,
        }),
    }
}

/// Makes a contract test that failed because something did not come in time.
fn tested_late(name: &str, of_a_fix: bool, wait: Wait) -> Tested {
    let mut test = tested(name, of_a_fix, Some((OVERDUE, None)));
    test.failure.as_mut().unwrap().wait = Some(wait);
    test
}

const OVERDUE: &str = "nobody was answered: there was no answer within 15 s";
/// Use of the machine by nobody else.
const QUIET: Wait = Wait {
    elsewhere_share: Some(0.1),
    is_idle: false,
};
/// Use of the machine by other programs, while the server wanted a CPU.
const BUSY: Wait = Wait {
    elsewhere_share: Some(0.83),
    is_idle: false,
};
/// The same while the server waited for something else.
const STUCK: Wait = Wait {
    is_idle: true,
    ..BUSY
};

/// Words on a busy machine, with the remedy.
const NEIGHBOURS: [&str; 3] = [
    "the machine is busy",
    "other programs used 83 %",
    "Close them and run this again",
];

/// Lets other programs use this much of the machine beside the exercise.
fn neighbours(trial: &mut Trial) {
    trial.exercise.round.elsewhere_share = Some(0.83);
}

#[test]
fn an_answer_that_does_not_come_is_the_edits_fault_unless_the_machine_is_busy() {
    let nothing = |trial: &mut Trial| {
        answers(trial, 0, 50.0);
        counts(trial, IN_FLIGHT, Some(0.0));
    };
    fails(nothing, &["answered nothing in 2", "lock"]);
    let busy = |trial: &mut Trial| {
        nothing(trial);
        neighbours(trial);
    };
    let grade = is_invalid(busy, &NEIGHBOURS);
    assert!(grade.reason.contains("answered nothing in 2"));
    // No neighbour keeps a server waiting that lacks no CPU.
    let stuck = |trial: &mut Trial| {
        busy(trial);
        trial.exercise.is_stuck = true;
    };
    fails(
        stuck,
        &["answered nothing in 2", "a single request", "lock"],
    );
    for (cause, kind) in [
        ("time_out", Invalid),
        ("status 503", Invalid),
        ("status 500", Failed),
        ("closed", Failed),
    ] {
        let refused = |trial: &mut Trial| {
            seen(trial).errors.insert(cause.to_owned(), 12);
        };
        fails(refused, &["12 requests"]);
        let beside_others = |trial: &mut Trial| {
            refused(trial);
            neighbours(trial);
        };
        graded(beside_others, kind, &["12 requests"]);
    }
    // Neither is the problem's lateness the edit's.
    let late_problem = |trial: &mut Trial| {
        completes(&mut trial.problem.round, 0);
        neighbours(trial);
    };
    is_invalid(late_problem, &NEIGHBOURS);
}

#[test]
fn a_test_that_failed_by_time_is_the_edits_fault_unless_the_machine_is_busy() {
    let late = |wait| Attempt::Tested {
        tests: vec![tested_late("a crowd is answered", false, wait)],
    };
    for (wait, kind) in [
        (Wait::default(), Failed),
        (QUIET, Failed),
        (STUCK, Failed),
        (BUSY, Invalid),
    ] {
        let grade = check(&chapter(), &late(wait), kind, &[OVERDUE]);
        assert_eq!(grade.contract.broken.is_empty(), kind == Invalid);
        let more = (kind == Invalid).then_some(Evidence::Load);
        assert_eq!(grade.wants_after(Evidence::Contract), more);
        let said = String::new();
        let silent = Attempt::DoesNotListen { said, wait };
        check(&chapter(), &silent, kind, &["did not begin to listen"]);
        let of_a_fix = |trial: &mut Trial| {
            trial.tests = vec![tested_late("nobody waits", true, wait)];
        };
        graded(of_a_fix, kind, &["a test does", OVERDUE]);
    }
    check(&chapter(), &late(BUSY), Invalid, &NEIGHBOURS);
    // Another failure is no matter of time, wherever it stands.
    let tests = vec![
        tested_late("a crowd is answered", false, BUSY),
        tested("the answer is the sum", false, Some(("it is not", None))),
    ];
    let both = check(
        &chapter(),
        &Attempt::Tested { tests },
        Failed,
        &["it is not"],
    );
    assert!(!both.reason.contains("busy"), "{}", both.reason);
}

/// Answers that come too late are not among those by which a count is divided.
#[test]
fn a_count_for_each_answer_is_judged_on_a_quiet_machine_or_if_it_is_far_off() {
    let chapter = with_guardrail(|claim| {
        claim.quantity = Quantity::Counter("calls_per_answer".to_owned());
    });
    for (reading, is_busy, kind) in [
        (1.3, false, Failed),
        (1.3, true, Invalid),
        (5.1, true, Failed),
    ] {
        let edit = |trial: &mut Trial| {
            counts(trial, "calls_per_answer", Some(reading));
            if is_busy {
                neighbours(trial);
            }
        };
        graded_by(&chapter, edit, kind, &["At most 1 is allowed"]);
    }
}

/// Noise may hide how fast an edit is. It does not hide what was counted.
#[test]
fn a_count_decides_before_what_did_not_come_in_time() {
    let chapter = with_guardrail(|_| ());
    for reading in [1.0, 68.0] {
        for is_test in [true, false] {
            let late = |trial: &mut Trial| {
                counts(trial, "at_once", Some(reading));
                neighbours(trial);
                if is_test {
                    trial.tests = vec![tested_late("a crowd is answered", false, BUSY)];
                } else {
                    seen(trial).errors.insert("time_out".to_owned(), 129);
                }
            };
            let (kind, word) = match reading {
                1.0 => (Invalid, "the machine is busy"),
                _ => (Failed, "pieces of work at once: 68"),
            };
            let grade = graded_by(&chapter, late, kind, &[word]);
            assert_eq!(grade.reason.contains("busy"), kind == Invalid);
        }
    }
}

#[test]
fn a_failed_contract_test_is_the_reason_with_its_sentence() {
    let kept = tested("strangers are refused", false, None);
    let gone = "`GET /read` is not answered: look for a lock that is never given back";
    for (panic, words) in [
        (None, ["all are kept", gone]),
        (
            Some("exercise.rs:3: no client"),
            ["the exercise panics", gone],
        ),
    ] {
        let failed = tested("all are kept", false, Some((gone, panic)));
        let tests = vec![kept.clone(), failed];
        let attempt = Attempt::Tested { tests };
        let grade = check(&chapter(), &attempt, Failed, &words);
        assert_eq!(grade.contract.broken, ["all are kept"]);
        assert_eq!(grade.contract.held.last(), Some(&kept.name));
        assert_eq!(grade.detail.as_deref(), panic);
    }
}

/// The problem fails this test, too, so the grade of an exercise as shipped names its root cause first.
#[test]
fn what_only_a_fix_can_keep_is_judged_last() {
    let name = "new topics are written at once";
    let kept = passes(|trial| trial.tests = vec![tested(name, true, None)]);
    assert!(kept.contract.held.iter().any(|held| held == name));
    let seen = "two of 6 requests waited for each other";
    let broken = |trial: &mut Trial| trial.tests = vec![tested(name, true, Some((seen, None)))];
    let words = ["but a test does", name, seen];
    let grade = graded_by(&chapter(), broken, Failed, &words);
    assert_eq!(grade.contract.broken, [name]);
    let both = |trial: &mut Trial| {
        broken(trial);
        counts(trial, IN_FLIGHT, Some(1.0));
    };
    let grade = graded_by(&chapter(), both, Failed, &["At least"]);
    assert!(!grade.reason.contains("a test does"), "{}", grade.reason);
}

/// A root cause that is counted on another build, or in another scenario, has a round of its own.
#[test]
fn a_root_cause_counted_apart_is_read_off_its_own_round() {
    let mut record = record();
    claiming(&mut record, |claims| {
        claims[0].scenario = Some("profiled".to_owned());
        claims[0].features = vec!["allocations".to_owned()];
    });
    // There are a thousand users there, whatever the round beside the problem counts.
    for (in_flight, expected, words) in [
        (Some(500.0), Passed, "500 (at least 500 are needed)"),
        (Some(499.0), Failed, "499. At least 500"),
        (None, Invalid, "did not report"),
    ] {
        let edit = |trial: &mut Trial| {
            counts(trial, IN_FLIGHT, Some(3.0));
            let outcome = outcome(1_000, 12_000, 2.0, 51.0);
            let mut apart = round(Purpose::RootCause, EXERCISE, "profiled", 0.0, outcome);
            apart.readings = in_flight
                .map(|peak| (IN_FLIGHT.to_owned(), peak))
                .into_iter()
                .collect();
            trial.counted = vec![apart];
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
}

#[test]
fn a_generator_that_starved_says_nothing_against_an_edit() {
    let starves = |trial: &mut Trial, waited| {
        seen(trial).generator.cpu_share = Some(0.02);
        seen(trial).generator.waited_share = Some(waited);
    };
    let slow = |trial: &mut Trial, waited| {
        answers(trial, 20, 900.0);
        starves(trial, waited);
    };
    fails(|trial| slow(trial, 0.4), &["worse than the problem"]);
    is_invalid(
        |trial| slow(trial, 0.7),
        &[
            "other programs took 70 % of the load generator's CPU",
            "Close them",
        ],
    );
    // Other programs that had most of the machine beside one of the two say nothing against it, either.
    let beside = |share| {
        move |trial: &mut Trial| {
            slow(trial, 0.0);
            trial.problem.round.elsewhere_share = Some(0.2);
            trial.exercise.round.elsewhere_share = Some(share);
        }
    };
    fails(beside(0.5), &[]);
    is_invalid(beside(0.8), &["other programs used 80 %"]);
    // An exercise that is no worse in spite of that passes.
    passes(|trial| starves(trial, 0.7));
    // A server without CPU may not have let in all users. One at a time is the fault all the same.
    for (count, kind) in [(70.0, Invalid), (1.0, Failed)] {
        let few = |trial: &mut Trial| {
            starves(trial, 0.7);
            counts(trial, IN_FLIGHT, Some(count));
        };
        graded(few, kind, &["At least 100"]);
    }
}
