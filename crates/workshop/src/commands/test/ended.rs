//! How checks ended, and what is said of all of them at the end.

use std::fmt;

/// How one check ended.
pub(super) enum Ended {
    Passed,
    /// For this reason.
    Failed(String),
    Skipped,
}

/// How all of them ended: the reasons once more, then the line that scripts look for.
#[derive(Debug, Default)]
pub(super) struct Counts {
    passed: u32,
    skipped: u32,
    failures: Vec<String>,
}

impl Counts {
    /// One more check.
    pub(super) fn add(&mut self, name: &str, ended: Ended) {
        match ended {
            Ended::Passed => self.passed += 1,
            Ended::Failed(reason) => self.failures.push(format!("FAIL  {name}: {reason}")),
            Ended::Skipped => self.skipped += 1,
        }
    }

    /// Whether none has failed.
    pub(super) fn are_good(&self) -> bool {
        self.failures.is_empty()
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for failure in &self.failures {
            writeln!(f, "{failure}")?;
        }
        write!(f, "{} passed, {} failed", self.passed, self.failures.len())?;
        if self.skipped > 0 {
            write!(f, ", {} skipped", self.skipped)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_what_test_readers_look_for() {
        let mut counts = Counts::default();
        counts.add("one", Ended::Passed);
        assert_eq!(counts.to_string(), "1 passed, 0 failed");
        counts.add("two", Ended::Skipped);
        assert_eq!(counts.to_string(), "1 passed, 0 failed, 1 skipped");
    }

    #[test]
    fn reasons_are_said_once_more_before_it() {
        let mut counts = Counts::default();
        counts.add("lints", Ended::Failed("a warning".to_owned()));
        assert!(!counts.are_good());
        assert_eq!(
            counts.to_string(),
            "FAIL  lints: a warning\n0 passed, 1 failed"
        );
    }
}
