//! A chapter's contract tests as a program: the run on one variant, and the result of each test.

use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use children::{Interrupt, Starting};

use crate::measurement::attempt::{Failure, Tested};

use super::VARIANT;

/// Prefix of a panic of the server, in the output of a failed test.
pub(super) const PANIC: &str = "the server panicked: ";

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
    let output = Starting::of(&command).output(interrupt, TIME_OUT, KEPT)?;
    let output = output.ok_or_else(|| {
        io::Error::other(format!("they did not end within {} s", TIME_OUT.as_secs()))
    })?;
    let tested = results(&String::from_utf8_lossy(&output.stdout));
    let has_failed = tested.iter().any(|test| test.failure.is_some());
    if output.status.success() || has_failed {
        return Ok(tested);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("{} {said}", output.status)))
}

/// Reads the output of the standard test harness.
fn results(printed: &str) -> Vec<Tested> {
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
            "FAILED" => Some(failure(details(printed, name))),
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
fn failure(details: &str) -> Failure {
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
    Failure {
        sentence: match (right, left) {
            (Some(expected), Some(seen)) => format!("{said} (expected {expected}, got {seen})"),
            _ => said.to_owned(),
        },
        panic: panic.map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            })
        };
        let counted = "three requests make a call each (expected 3, got 2)";
        let panic = Some("src/exercise.rs:31: no client");
        assert_eq!(
            results(PRINTED),
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
}
