//! Conditions on the figures of a load, as a command line gives them: `p99 < 100ms`, `errors < 0.1 %`.

use std::fmt;
use std::str::FromStr;

use crate::figures;

/// Figure of a load that a condition is about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Figure {
    /// Latency at this quantile (0 to 1), in milliseconds.
    Latency(f64),
    /// Share (0 to 1) of requests without a right answer.
    Errors,
    /// Right answers per second.
    Rate,
}

/// Side of its limit on which a figure lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Below,
    Above,
}

/// A condition on one figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Condition {
    figure: Figure,
    side: Side,
    /// In the unit of the figure.
    limit: f64,
}

impl Condition {
    /// Returns the figure that it is about.
    pub fn figure(&self) -> Figure {
        self.figure
    }

    /// Returns its limit: milliseconds, a share or requests per second.
    pub fn limit(&self) -> f64 {
        self.limit
    }

    /// Returns whether this value of its figure meets it.
    pub fn is_met_by(&self, value: f64) -> bool {
        match self.side {
            Side::Below => value < self.limit,
            Side::Above => value > self.limit,
        }
    }

    /// Returns whether its figure may meet it, of which only is known that it is `least` or more.
    pub fn may_be_met_from(&self, least: f64) -> bool {
        match self.side {
            Side::Below => least < self.limit,
            Side::Above => true,
        }
    }

    /// Returns whether it can be the goal of a search for the highest rate: a latency or a share of errors that stays
    /// below its limit.
    pub fn is_goal(&self) -> bool {
        self.side == Side::Below && self.figure != Figure::Rate
    }

    /// Formats a value of its figure for people.
    pub fn value(&self, value: f64) -> String {
        match self.figure {
            Figure::Latency(_) => figures::milliseconds(value),
            Figure::Errors => figures::percent(value),
            Figure::Rate => format!("{} requests/s", figures::count(value)),
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Quantiles are read from as many digits.
            Self::Latency(quantile) => write!(f, "p{}", (quantile * 1e6).round() / 1e4),
            Self::Errors => f.write_str("errors"),
            Self::Rate => f.write_str("rate"),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = match self.side {
            Side::Below => '<',
            Side::Above => '>',
        };
        write!(f, "{} {side} {}", self.figure, self.value(self.limit))
    }
}

/// A text that is no condition. Its message names right ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoCondition(&'static str);

impl fmt::Display for NoCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}; a condition is 'p99 < 100ms', 'p95 < 1s', 'errors < 0.1 %' or 'rate > 500'",
            self.0
        )
    }
}

impl std::error::Error for NoCondition {}

impl FromStr for Condition {
    type Err = NoCondition;

    /// Parses a condition such as `p99 < 100ms`. `<=` and `>=` mean the same as `<` and `>`, since figures are measured.
    fn from_str(text: &str) -> Result<Self, NoCondition> {
        let Some(at) = text.find(['<', '>']) else {
            return Err(NoCondition("it has neither < nor >"));
        };
        let side = if text[at..].starts_with('<') {
            Side::Below
        } else {
            Side::Above
        };
        let figure = figure(text[..at].trim())?;
        let limit = text[at + 1..].trim_start_matches('=').trim();
        let limit = match figure {
            Figure::Latency(_) => time(limit),
            Figure::Errors => share(limit),
            Figure::Rate => number(limit.trim_end_matches("/s").trim_end_matches("requests")),
        };
        match limit {
            Some(limit) => Ok(Self {
                figure,
                side,
                limit,
            }),
            None => Err(NoCondition(match figure {
                Figure::Latency(_) => "its limit is no time, such as 100ms, 1.5s or 800us",
                Figure::Errors => "its limit is no share above 0 and up to 100 %",
                Figure::Rate => "its limit is no rate above 0",
            })),
        }
    }
}

fn figure(text: &str) -> Result<Figure, NoCondition> {
    match text {
        "errors" => Ok(Figure::Errors),
        "rate" => Ok(Figure::Rate),
        _ => match text.strip_prefix('p').and_then(number) {
            Some(percent) if percent < 100.0 => Ok(Figure::Latency(percent / 100.0)),
            _ => Err(NoCondition(
                "its figure is none of p50, p90, p95, p99, p99.9, errors and rate",
            )),
        },
    }
}

/// Parses a number above 0.
fn number(text: &str) -> Option<f64> {
    let number: f64 = text.trim().parse().ok()?;
    (number.is_finite() && number > 0.0).then_some(number)
}

/// Parses a time, and returns it in milliseconds. A time needs its unit: 100 might be either.
fn time(text: &str) -> Option<f64> {
    for (unit, ms) in [("ms", 1.0), ("us", 1e-3), ("µs", 1e-3), ("s", 1e3)] {
        if let Some(text) = text.strip_suffix(unit) {
            return Some(number(text)? * ms);
        }
    }
    None
}

fn share(text: &str) -> Option<f64> {
    let share = match text.strip_suffix('%') {
        Some(percent) => number(percent)? / 100.0,
        None => number(text)?,
    };
    (share <= 1.0).then_some(share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read_and_written() {
        for (text, written, met, missed) in [
            ("p99 < 100ms", "p99 < 100 ms", 99.9, 100.0),
            ("p99.9<=1.5 s", "p99.9 < 1.50 s", 1499.0, 1501.0),
            ("p50 > 800us", "p50 > 0.80 ms", 0.81, 0.8),
            ("errors < 0.1 %", "errors < 0.1 %", 0.0009, 0.001),
            ("errors > 0.05", "errors > 5.0 %", 0.06, 0.05),
            ("rate < 500", "rate < 500 requests/s", 499.0, 501.0),
            (
                "rate < 500 requests/s",
                "rate < 500 requests/s",
                499.0,
                501.0,
            ),
        ] {
            let condition: Condition = text.parse().unwrap();
            assert_eq!(condition.to_string(), written, "{text}");
            assert!(
                condition.is_met_by(met) && !condition.is_met_by(missed),
                "{text}"
            );
            let again: Condition = text.replace(' ', "").parse().unwrap();
            assert_eq!(again, condition);
        }
    }

    #[test]
    fn a_figure_of_which_only_the_least_is_known_may_meet_what_it_is_not_above() {
        for (text, least, may) in [
            ("p99 > 100ms", 5.0, true),
            ("p99 > 100ms", 5000.0, true),
            ("p99 < 100ms", 5.0, true),
            ("p99 < 100ms", 100.0, false),
            ("p99 < 100ms", 5000.0, false),
        ] {
            let condition: Condition = text.parse().unwrap();
            assert_eq!(
                condition.may_be_met_from(least),
                may,
                "{text}, {least} ms or more"
            );
        }
    }

    #[test]
    fn a_text_that_is_no_condition_is_refused_with_an_example() {
        for (text, word) in [
            ("", "neither < nor >"),
            ("p99", "neither < nor >"),
            ("p99 < 100", "100ms"),
            ("p99 < -1ms", "100ms"),
            ("p100 < 1ms", "p99.9"),
            ("p0 < 1ms", "p99.9"),
            ("pnan < 1ms", "p99.9"),
            ("mean < 1ms", "p99.9"),
            ("errors < 101 %", "share"),
            ("errors < 0", "share"),
            ("errors < 5ms", "share"),
            ("rate > inf", "rate"),
            ("< 5ms", "p99.9"),
            ("p99 <> 5ms", "100ms"),
        ] {
            let said = text.parse::<Condition>().unwrap_err().to_string();
            assert!(
                said.contains(word) && said.contains("'p99 < 100ms'"),
                "{said}"
            );
        }
    }

    #[test]
    fn a_goal_of_a_search_is_an_upper_limit_of_a_latency_or_of_errors() {
        for (text, is_goal) in [
            ("p99 < 1s", true),
            ("errors < 1%", true),
            ("p99 > 1s", false),
            ("rate < 5", false),
        ] {
            assert_eq!(text.parse::<Condition>().unwrap().is_goal(), is_goal);
        }
    }
}
