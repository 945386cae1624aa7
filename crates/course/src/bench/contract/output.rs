//! A chapter's contract tests as a program: the run on one variant, and the result of each test.

use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use children::{Interrupt, Starting};
use engine::load::ask::Unanswered;

use crate::measurement::attempt::{Failure, Tested, Wait, is_given_up};

use super::VARIANT;
use super::user::{IDLE, OVERDUE};
use crate::bench::neighbours::Neighbours;

/// Prefix of a panic of the server, in the output of a failed test.
pub(super) const PANIC: &str = "the server panicked: ";

/// Line in the output of a test that failed by an assertion about time.
pub(super) const IN_TIME: &str = "an assertion about time";

/// Module in `contract.rs` for tests that only a fix can pass.
const OF_A_FIX: &str = "of_a_fix::";
/// Number of tests that run at once. They wait nearly all of their time.
const AT_ONCE: &str = "8";
/// Longest time for all of them together.
const TIME_OUT: Duration = Duration::from_secs(300);
/// Bytes of their output that are kept.
const KEPT: usize = 1 << 20;

/// Runs the tests in `program` on `variant` alone: the tests for every variant, or those that only a fix can
/// pass.
///
/// # Errors
///
/// Fails if the program cannot be run, does not end in time, or fails without a failed test, or if
/// `interrupt` is set.
pub fn run(
    program: &Path,
    variant: &str,
    of_a_fix: bool,
    interrupt: &Interrupt,
) -> io::Result<Vec<Tested>> {
    let mut command = Command::new(program);
    command
        .args(["--test-threads", AT_ONCE])
        .env(VARIANT, variant)
        .env("RUST_BACKTRACE", "0");
    if of_a_fix {
        command.arg(OF_A_FIX);
    } else {
        command.args(["--skip", OF_A_FIX]);
    }
    let neighbours = Neighbours::watch();
    let output = Starting::of(&command).output(interrupt, TIME_OUT, KEPT)?;
    let elsewhere_share = neighbours.share();
    let output = output.ok_or_else(|| {
        io::Error::other(format!(
            "they did not end within {} s; if other programs keep the machine busy, close them and run this again",
            TIME_OUT.as_secs()
        ))
    })?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let tested = results(&printed, elsewhere_share);
    let has_failed = tested.iter().any(|test| test.failure.is_some());
    if output.status.success() || has_failed {
        return Ok(tested);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("{} {said}", output.status)))
}

/// Reads the output of the standard test harness. Other programs used this share of the machine's CPU time.
fn results(printed: &str, elsewhere_share: Option<f64>) -> Vec<Tested> {
    let mut tests = Vec::new();
    for line in printed.lines() {
        let Some((name, how)) = line.rsplit_once(" ... ") else {
            continue;
        };
        let Some(name) = name.strip_prefix("test ") else {
            continue;
        };
        let failure = match how {
            "ok" => None,
            "FAILED" => Some(failure(details(printed, name), elsewhere_share)),
            _ => continue,
        };
        let plain = name.strip_prefix(OF_A_FIX).unwrap_or(name);
        tests.push(Tested {
            name: plain.replace('_', " "),
            of_a_fix: plain != name,
            failure,
        });
    }
    // Tests end in any order.
    tests.sort_by(|one, other| one.name.cmp(&other.name));
    tests
}

/// Finds the output of the test of this name.
fn details<'a>(printed: &'a str, name: &str) -> &'a str {
    let head = format!("---- {name} stdout ----\n");
    let (_, details) = printed.split_once(&head).unwrap_or_default();
    let end = details.find("\n---- ").or(details.find("\nfailures:\n"));
    &details[..end.unwrap_or(details.len())]
}

/// Reads the message of the test's panic into one line. For `assert_eq!`, both values follow it.
fn failure(details: &str, elsewhere_share: Option<f64>) -> Failure {
    let mut message = details;
    if let Some((_, panic)) = details.split_once("panicked at ")
        && let Some((_, after_place)) = panic.split_once('\n')
    {
        message = after_place;
    }
    let mut said = Vec::new();
    for line in message.lines() {
        let line = line.trim();
        if line.starts_with("note: ") || line.starts_with(PANIC) {
            break;
        }
        said.push(line);
    }
    let [right, left] = ["right: ", "left: "].map(|key| {
        let place = said.iter().rposition(|line| line.starts_with(key))?;
        Some(said.remove(place)[key.len()..].to_owned())
    });
    let said = said.join(" ");
    let said = said
        .trim()
        .trim_start_matches("assertion `left == right` failed: ");
    let panic = details.lines().find_map(|line| line.strip_prefix(PANIC));
    let seen = left.as_deref();
    let sentence = match (right, seen) {
        (Some(expected), Some(seen)) => format!("{said} (expected {expected}, got {seen})"),
        _ => said.to_owned(),
    };
    let is_about_time = details.lines().any(|line| line == IN_TIME)
        || sentence.contains(OVERDUE)
        || sentence.contains(&Unanswered::TimeOut.to_string())
        || seen.is_some_and(|seen| is_given_up(seen.trim_matches('`')));
    let wait = is_about_time.then(|| Wait {
        elsewhere_share,
        is_idle: sentence.contains(IDLE),
    });
    Failure {
        sentence,
        panic: panic.map(str::to_owned),
        wait,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::server::ServerError;

    const PRINTED: &str = "
running 4 tests
test every_request_makes_a_call ... ok
test a_request_is_answered ... FAILED
test elsewhere_is_refused ... ignored, why
test of_a_fix::nobody_waits ... FAILED

failures:

---- a_request_is_answered stdout ----

thread 'a_request_is_answered' (17) panicked at chapters/1/tests/contract.rs:12:9:
assertion `left == right` failed: three requests
make a call each
  left: 2
 right: 3
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace

---- of_a_fix::nobody_waits stdout ----

thread 'of_a_fix::nobody_waits' (18) panicked at chapters/1/tests/contract.rs:30:9:
two of 6 requests waited
the server panicked: src/exercise.rs:31: no client

failures:
    a_request_is_answered
    of_a_fix::nobody_waits

test result: FAILED. 1 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.42s
";

    #[test]
    fn what_the_harness_prints_is_read() {
        let tested = |name: &str, of_a_fix, failure| Tested {
            name: name.to_owned(),
            of_a_fix,
            failure,
        };
        let failure = |sentence: &str, panic: Option<&str>| {
            Some(Failure {
                sentence: sentence.to_owned(),
                panic: panic.map(str::to_owned),
                wait: None,
            })
        };
        let counted = "three requests make a call each (expected 3, got 2)";
        let panic = Some("src/exercise.rs:31: no client");
        assert_eq!(
            results(PRINTED, Some(0.8)),
            [
                tested("a request is answered", false, failure(counted, None)),
                tested("every request makes a call", false, None),
                tested(
                    "nobody waits",
                    true,
                    failure("two of 6 requests waited", panic)
                ),
            ]
        );
    }

    /// The wait says how busy the machine was, and nothing of a failure that is no matter of time.
    #[test]
    fn a_failure_by_time_says_so() {
        let wait = |said: &str| {
            let details = format!("thread 'one' panicked at contract.rs:1:1:\n{said}\n");
            failure(&details, Some(0.8)).wait
        };
        let by_time = |is_idle| Wait {
            elsewhere_share: Some(0.8),
            is_idle,
        };
        let overdue = "nobody was answered: there was no answer within 15 s";
        assert_eq!(wait(overdue), Some(by_time(false)));
        assert_eq!(
            wait(&format!("{overdue} {IDLE}; look for a lock")),
            Some(by_time(true))
        );
        let answered = |status| {
            format!(
                "assertion `left == right` failed: the sum\n  left: `{status}`\n right: \"200 6\""
            )
        };
        let counters = ServerError::no("exercise", "/metrics", &Unanswered::TimeOut);
        assert_eq!(wait(&counters.to_string()), Some(by_time(false)));
        assert_eq!(wait(&answered("503")), Some(by_time(false)));
        assert_eq!(wait(&answered("200 5")), None);
        assert_eq!(wait("a request was told `200 5` instead of `502`"), None);
        let in_time = format!("{IN_TIME}\n\nthread 'one' panicked at contract.rs:1:1:\ntoo late\n");
        assert_eq!(failure(&in_time, Some(0.8)).wait, Some(by_time(false)));
    }
}
