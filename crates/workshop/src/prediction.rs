//! A reader's expectation of a chapter, written down before anything is measured.

use std::fmt;
use std::fmt::Write as _;
use std::str::FromStr;

use course::analysis::finding::Finding;
use course::analysis::verdict::Analysis;
use serde::{Deserialize, Serialize};
use statistics::figures;

/// A reader's prediction. Each part may be left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Prediction {
    /// UTC, such as `2026-11-20T20:30:00Z`.
    pub(crate) made: String,
    /// Ratio of a fix to the problem; larger is better.
    pub(crate) gain: Option<Range>,
    /// The root cause's count in the problem.
    pub(crate) problem: Option<Range>,
    /// The root cause's count in a fixed service.
    pub(crate) fix: Option<Range>,
}

impl Prediction {
    /// The prediction beside the law and the measurement, a line each for effect and root cause.
    pub(crate) fn compared(&self, analysis: &Analysis) -> String {
        let mut lines = String::new();
        if let Some(gain) = self.gain {
            let law = match &analysis.prediction {
                Some(law) => format!("; the law: {}", figures::gain(law.ratio)),
                None => String::new(),
            };
            let measured = match analysis.effect().and_then(|effect| effect.ratio) {
                Some(ratio) => {
                    let than = match ratio {
                        _ if ratio > gain.high => ", better than you expected",
                        _ if ratio < gain.low => ", less than you expected",
                        _ => ", as you expected",
                    };
                    format!("; measured: {}{than}", figures::gain(ratio))
                }
                None => String::new(),
            };
            let _ = writeln!(lines, "Predicted   you: {gain} times{law}{measured}");
        }
        let Some(cause) = analysis.root_cause() else {
            return lines;
        };
        let label = cause.claim.label();
        for (yours, side, measured) in [
            (self.problem, "problem", cause.problem),
            (self.fix, "fix", cause.fix),
        ] {
            if let Some(yours) = yours {
                let measured = measured_text(cause, measured);
                let _ = writeln!(lines, "Predicted   {label}, {side}: you: {yours}{measured}");
            }
        }
        lines
    }
}

fn measured_text(finding: &Finding, reading: Option<f64>) -> String {
    match reading {
        Some(reading) => format!("; measured: {}", finding.claim.unit.text(reading)),
        None => String::new(),
    }
}

/// One number, or two with all between them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Range {
    low: f64,
    high: f64,
}

impl FromStr for Range {
    type Err = String;

    /// Reads `20`, `1,000`, `10-100`, `10..100` or `10 to 100`.
    fn from_str(text: &str) -> Result<Self, String> {
        let plain = text.to_ascii_lowercase().replace([',', '_'], "");
        let plain = plain
            .replace("to", "-")
            .replace("..", "-")
            .replace('–', "-");
        let number = |part: &str| match part.trim().parse::<f64>() {
            Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
            _ => {
                Err("not a number of 0 or more, such as 20, nor a range, such as 10-100".to_owned())
            }
        };
        let (low, high) = plain.split_once('-').unwrap_or((&plain, &plain));
        let (low, high) = (number(low)?, number(high)?);
        if low > high {
            return Err(
                "a range that ends before it begins: write the smaller number first".to_owned(),
            );
        }
        Ok(Self { low, high })
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&figures::count(self.low))?;
        if self.high > self.low {
            write!(f, " to {}", figures::count(self.high))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ranges_are_read_as_people_type_them() {
        for (typed, shown) in [
            ("20", "20"),
            ("1,000", "1,000"),
            (" 100 to 5,000 ", "100 to 5,000"),
            ("10-100", "10 to 100"),
            ("10..100", "10 to 100"),
            ("0.5", "0.5"),
        ] {
            assert_eq!(Range::from_str(typed).unwrap().to_string(), shown);
        }
        for typed in ["", "many", "-3", "100-10", "nan", "inf", "1-2-3"] {
            assert!(Range::from_str(typed).is_err(), "{typed}");
        }
    }
}
