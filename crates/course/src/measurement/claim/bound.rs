//! A limit on a figure, as `chapter.toml` writes it: `<= 1`, `>= 0.9 users`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Side of the limit on which a figure has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// At or below it.
    AtMost,
    /// At or above it.
    AtLeast,
}

/// Unit of the number of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// The quantity itself.
    Itself,
    /// Shares of the simultaneous users.
    Users,
}

/// A limit on a figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Bound {
    /// The side on which a figure has to be.
    pub direction: Direction,
    /// The number: 0 or more.
    pub number: f64,
    /// Its unit.
    pub of: Of,
}

impl Bound {
    /// Makes the bound "at least `number`".
    pub fn at_least(number: f64) -> Self {
        Self {
            direction: Direction::AtLeast,
            number,
            of: Of::Itself,
        }
    }

    /// Makes the bound "at most `number`".
    pub fn at_most(number: f64) -> Self {
        Self {
            direction: Direction::AtMost,
            ..Self::at_least(number)
        }
    }

    /// Returns the limit for `users` simultaneous users.
    pub fn limit(self, users: u32) -> f64 {
        match self.of {
            Of::Itself => self.number,
            Of::Users => self.number * f64::from(users),
        }
    }

    /// Returns whether `reading` keeps to the limit; NaN never does.
    pub fn holds(self, reading: f64, users: u32) -> bool {
        match self.direction {
            Direction::AtMost => reading <= self.limit(users),
            Direction::AtLeast => reading >= self.limit(users),
        }
    }

    /// Returns the reading that comes nearest to breaking it; `None` without a reading or with one that is
    /// not a number.
    pub fn worst(self, readings: impl IntoIterator<Item = f64>) -> Option<f64> {
        let worst = match self.direction {
            Direction::AtMost => f64::max,
            Direction::AtLeast => f64::min,
        };
        let readings: Vec<f64> = readings.into_iter().collect();
        if readings.iter().any(|reading| reading.is_nan()) {
            return None;
        }
        readings.into_iter().reduce(worst)
    }

    /// Formats `at most 1` or `at least 900`, with the limit in the caller's words.
    pub fn in_words_of(self, limit: impl fmt::Display) -> String {
        match self.direction {
            Direction::AtMost => format!("at most {limit}"),
            Direction::AtLeast => format!("at least {limit}"),
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self.direction {
            Direction::AtMost => "<=",
            Direction::AtLeast => ">=",
        };
        write!(f, "{sign} {}", self.number)?;
        match self.of {
            Of::Itself => Ok(()),
            Of::Users => f.write_str(" users"),
        }
    }
}

impl From<Bound> for String {
    fn from(bound: Bound) -> Self {
        bound.to_string()
    }
}

impl TryFrom<String> for Bound {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let refused =
            || format!("`{text}` is not a bound; write one such as `<= 1`, `>= 0.9 users`");
        let mut words = text.split_whitespace();
        let direction = match words.next() {
            Some("<=") => Direction::AtMost,
            Some(">=") => Direction::AtLeast,
            _ => return Err(refused()),
        };
        let number = words.next().ok_or_else(refused)?.replace('_', "");
        let number: f64 = number.parse().map_err(|_| refused())?;
        let of = match words.next() {
            None => Of::Itself,
            Some("users") => Of::Users,
            Some(_) => return Err(refused()),
        };
        if words.next().is_some() || !number.is_finite() || number < 0.0 {
            return Err(refused());
        }
        Ok(Self {
            direction,
            number,
            of,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Bound, String> {
        text.to_owned().try_into()
    }

    #[test]
    fn a_bound_reads_as_it_is_written() {
        for text in ["<= 1", ">= 0.9 users", ">= 3000000"] {
            assert_eq!(read(text).unwrap().to_string(), text);
        }
        assert_eq!(read(">= 3_000_000"), Ok(Bound::at_least(3e6)));
    }

    #[test]
    fn what_is_no_bound_is_refused_with_one_that_is() {
        for text in [
            "",
            "1",
            "< 1",
            ">= x",
            ">= -1",
            ">= inf",
            ">= 1 files",
            ">= 1 users more",
        ] {
            let said = read(text).unwrap_err();
            assert!(said.contains(">= 0.9 users"), "{said}");
        }
    }

    #[test]
    fn limits_keep_their_edges() {
        assert!(Bound::at_most(1.0).holds(1.0, 100) && !Bound::at_most(1.0).holds(1.5, 100));
        let most = read(">= 0.9 users").unwrap();
        assert!(most.holds(900.0, 1_000) && !most.holds(899.9, 1_000));
        assert!(!most.holds(f64::NAN, 1_000));
        assert_eq!(most.worst([950.0, 910.0]), Some(910.0));
        assert_eq!(most.worst([950.0, f64::NAN]), None);
        assert_eq!(most.worst([]), None);
    }
}
