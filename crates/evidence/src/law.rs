//! The one-line laws by which a chapter predicts, before anything is measured,
//! what its cure can gain.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::figures;

/// A chapter's law with its parameters: the table `[law.<name>]` of `chapter.toml`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Law {
    /// Little's law: calls in flight bound the throughput.
    Little(Little),
}

/// What a law says about one setting, in requests a second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// Most that the problem can answer, in requests a second.
    pub problem: f64,
    /// Most that the solution can answer, in requests a second.
    pub solution: f64,
    /// `solution / problem`.
    pub ratio: f64,
    /// The prediction in one sentence, figures included.
    pub sentence: String,
}

impl Law {
    /// The name that reports print, such as `Little's law`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Little(_) => "Little's law",
        }
    }

    /// What the law predicts for `users` who pause for `think` after each answer.
    pub fn predicted(&self, users: u32, think: Duration) -> Prediction {
        match self {
            Self::Little(law) => law.predicted(users, think),
        }
    }

    /// The time in ms that no honest answer can undercut, where the law knows one.
    pub fn shortest_answer_ms(&self) -> Option<f64> {
        match self {
            Self::Little(law) => Some(law.call_ms),
        }
    }
}

/// Little's law, L = λW (J. D. C. Little, "A proof for the queuing formula
/// L = λW", Operations Research 9(3), 1961), solved for the throughput λ.
///
/// With at most `c` calls of length `W` in flight, λ ≤ c/W. With `N` users who
/// think for `Z`, λ ≤ N/(Z + W) (the response time law; P. J. Denning and
/// J. P. Buzen, "The operational analysis of queueing network models", ACM
/// Computing Surveys 10(3), 1978). The smaller of the two holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Little {
    /// How long one call takes, in milliseconds.
    pub call_ms: f64,
    /// Calls that the problem lets be in flight at once.
    pub problem_in_flight: u32,
}

impl Little {
    fn predicted(&self, users: u32, think: Duration) -> Prediction {
        let call = self.call_ms / 1e3;
        let free = f64::from(users) / (think.as_secs_f64() + call);
        let limited = (f64::from(self.problem_in_flight) / call).min(free);
        let ratio = free / limited;
        let calls = if self.problem_in_flight == 1 {
            "one call".to_owned()
        } else {
            format!("{} calls", self.problem_in_flight)
        };
        Prediction {
            problem: limited,
            solution: free,
            ratio,
            sentence: format!(
                "With {calls} of {} ms in flight at a time, at most {} requests a second are \
                 answered; with none held back, {} get up to {}: {} times as many.",
                figures::count(self.call_ms),
                figures::count(limited.round()),
                figures::things(users.into(), "user"),
                figures::count(free.round()),
                figures::ratio(ratio)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held_lock() -> Law {
        Law::Little(Little {
            call_ms: 50.0,
            problem_in_flight: 1,
        })
    }

    #[track_caller]
    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-6 * b.abs(), "{a} is not {b}");
    }

    #[test]
    fn a_held_lock_passes_twenty_a_second_whatever_the_users() {
        for users in [1, 200, 3_000] {
            let predicted = held_lock().predicted(users, Duration::ZERO);
            close(predicted.problem, 20.0);
            close(predicted.ratio, f64::from(users));
        }
    }

    #[test]
    fn the_published_setting_is_bounded_by_5454_a_second() {
        let predicted = held_lock().predicted(3_000, Duration::from_millis(500));
        close(predicted.solution, 3_000.0 / 0.55);
        close(predicted.problem, 20.0);
        assert!(
            predicted.sentence.contains("5,455"),
            "{}",
            predicted.sentence
        );
    }

    #[test]
    fn users_who_think_long_do_not_meet_the_limit() {
        let predicted = held_lock().predicted(2, Duration::from_secs(1));
        close(predicted.problem, 2.0 / 1.05);
        close(predicted.ratio, 1.0);
    }
}
