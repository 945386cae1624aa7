//! What to show of a failed check's log: the failures of tests, else its end.

/// Lines shown at most, of either.
const SHOWN: usize = 60;

/// The tests that failed, by their paths in their crates.
fn failed_tests(log: &str) -> Vec<&str> {
    log.lines()
        .filter(|line| line.starts_with("test ") && line.ends_with(" ... FAILED"))
        .filter_map(|line| line.split(' ').nth(1))
        .collect()
}

/// The tests that failed, and what their programs say of it, wherever that stands, since others ran
/// after them. Without failed tests, the end of the log.
pub(super) fn of(log: &str) -> String {
    let failures = failures(log);
    let lines: Vec<&str> = log.lines().collect();
    let (shown, left) = if failures.is_empty() {
        let (above, shown) = lines.split_at(lines.len().saturating_sub(SHOWN));
        (shown, above.len())
    } else {
        let shown = &failures[..failures.len().min(SHOWN)];
        (shown, lines.len() - shown.len())
    };
    let names = match failed_tests(log) {
        names if names.is_empty() => String::new(),
        names => format!("{} failed\n", names.join(", ")),
    };
    format!("({left} lines more)\n{names}{}", shown.join("\n"))
}

/// From the headline over a program's failures to the line that counts them.
fn failures(log: &str) -> Vec<&str> {
    let mut within = false;
    let mut failures = Vec::new();
    for line in log.lines() {
        within |= line == "failures:";
        if within && !line.is_empty() {
            failures.push(line);
        }
        within &= !line.starts_with("test result:");
    }
    failures
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
$ cargo test
running 2 tests
test a::sums_ids ... ok
test a::closes ... FAILED

failures:

---- a::closes stdout ----
thread 'a::closes' panicked at src/a.rs:3:9:
open

failures:
    a::closes

test result: FAILED. 1 passed; 1 failed; 0 ignored
error: test failed, to rerun pass `--lib`

running 1 test
test b ... ok

test result: ok. 1 passed; 0 failed; 0 ignored
";

    #[test]
    fn a_failed_test_is_named_and_shown_though_others_ran_after_it() {
        assert_eq!(failed_tests(LOG), ["a::closes"]);
        let shown = of(LOG);
        assert_eq!(shown.lines().nth(1), Some("a::closes failed"));
        let said = "panicked at src/a.rs:3:9:\nopen\n";
        assert!(shown.contains(said), "{shown}");
        assert!(shown.starts_with("(14 lines more)"), "{shown}");
        assert!(!shown.contains("test b"), "{shown}");
    }

    #[test]
    fn without_failed_tests_the_end_is_shown() {
        let log: Vec<String> = (1..=62).map(|n| n.to_string()).collect();
        let shown = of(&log.join("\n"));
        assert!(failed_tests(&shown).is_empty());
        assert!(shown.starts_with("(2 lines more)\n3\n"), "{shown}");
        assert!(shown.ends_with("\n62"), "{shown}");
    }
}
