//! How all checks ended: the reasons once more, then the line that scripts look for.

use std::fmt;

#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) passed: u32,
    pub(super) skipped: u32,
    /// Effects that this machine could not judge.
    pub(super) told: usize,
    failures: Vec<String>,
}

impl Counts {
    pub(super) fn fail(&mut self, name: &str, reason: impl fmt::Display) {
        self.failures.push(format!("FAIL  {name}: {reason}"));
    }

    /// Whether none has failed.
    pub(super) fn are_good(&self) -> bool {
        self.failures.is_empty()
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.told {
            0 => {}
            1 => writeln!(f, "told: 1 effect not judged on this busy machine")?,
            told => writeln!(f, "told: {told} effects not judged on this busy machine")?,
        }
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
    fn the_last_line_counts_and_the_reasons_stand_above_it() {
        let mut counts = Counts {
            passed: 1,
            ..Counts::default()
        };
        assert_eq!(counts.to_string(), "1 passed, 0 failed");
        counts.told = 3;
        assert!(counts.are_good(), "what is told is no failure");
        counts.fail("lints", "a warning");
        counts.skipped = 1;
        assert!(!counts.are_good());
        assert_eq!(
            counts.to_string(),
            "told: 3 effects not judged on this busy machine\nFAIL  lints: a warning\n\
             1 passed, 1 failed, 1 skipped"
        );
    }
}
