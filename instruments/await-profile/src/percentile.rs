//! Percentile of a route's latencies, above which its requests are the slowest.

use std::fmt;
use std::str::FromStr;

/// Percentile of a route's latencies: its slowest requests are those above it.
///
/// The 99th percentile makes the slowest 1 % of the requests the tail.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Percentile(f64);

/// Error of a number that is no percentile, or none that a profile can show, as one sentence with the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a tail cannot begin at the percentile {0:?}: give a number from 50 to 99.99, such as 99 for the slowest 1 %"
)]
pub struct PercentileError(String);

impl Percentile {
    /// Smallest percentile: beyond it, half of the requests are the tail.
    const LOWEST: f64 = 50.0;
    /// Largest percentile. A further one takes more requests than services answer in the time of a profile.
    const HIGHEST: f64 = 99.99;

    /// Returns this percentile, in per cent.
    ///
    /// # Errors
    ///
    /// Returns an error if `percent` is below 50, above 99.99, or not a number.
    pub fn new(percent: f64) -> Result<Self, PercentileError> {
        if (Self::LOWEST..=Self::HIGHEST).contains(&percent) {
            return Ok(Percentile(percent));
        }
        Err(PercentileError(percent.to_string()))
    }

    /// Returns the percentile, between 50 and 99.99.
    pub fn percent(self) -> f64 {
        self.0
    }

    /// Returns the share of the requests above it, between 0 and 1.
    pub(crate) fn beyond(self) -> f64 {
        1.0 - self.0 / 100.0
    }

    /// Returns the requests above it in words, as in `the slowest 1 %`.
    pub(crate) fn slowest(self) -> String {
        // Hundredths are as fine as a percentile may be; a sum of floats would have more digits.
        let hundredths = ((100.0 - self.0) * 100.0).round();
        format!("the slowest {} %", hundredths / 100.0)
    }
}

impl fmt::Display for Percentile {
    /// Writes `p99`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{}", self.0)
    }
}

impl FromStr for Percentile {
    type Err = PercentileError;

    fn from_str(text: &str) -> Result<Self, PercentileError> {
        let percent = text.parse().map_err(|_| PercentileError(text.to_owned()))?;
        Percentile::new(percent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_percentile_with_a_tail_is_taken() {
        for (text, slowest) in [
            ("99", "the slowest 1 %"),
            ("99.9", "the slowest 0.1 %"),
            ("99.99", "the slowest 0.01 %"),
            ("50", "the slowest 50 %"),
        ] {
            let percentile: Percentile = text.parse().unwrap();
            assert_eq!(percentile.slowest(), slowest);
            assert_eq!(percentile.to_string(), format!("p{text}"));
        }
        for nonsense in ["100", "49", "0.99", "-1", "NaN", "inf", "", "ninety"] {
            let error = nonsense.parse::<Percentile>().unwrap_err().to_string();
            assert!(error.contains("from 50 to 99.99"), "{error}");
        }
    }
}
