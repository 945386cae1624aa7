//! What a few writes cost where a fair lock is held for long.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Prediction;
use crate::figures;

/// The barrier of a fair readers-writer lock.
///
/// A fair lock serves in the order of arrival: a waiting writer stops the readers behind it. So the
/// queue falls into generations of readers with a write after each. Readers of one generation
/// share the lock for the time `T` that one of them holds it; the next generation begins after
/// that. With a share `w` of writes a generation and its write have 1/w requests on average, and
/// λ ≤ 1/(wT).
///
/// This bound is for writes that lie evenly, as the embedded generator sends them. Where they fall
/// at random, a share `w` follows another write directly and shares its barrier, so that 1/(1 - w)
/// times as many pass. Without a held lock `N` users who think for `Z` get λ ≤ N/(Z + (1 - w)T),
/// because a write makes no call (the response time law, as for [`super::Little`]).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Barrier {
    /// How long a reader of the problem holds its guard, in milliseconds.
    pub hold_ms: f64,
}

impl Barrier {
    pub(super) fn predicted(&self, users: u32, think: Duration, write_share: f64) -> Prediction {
        let hold = self.hold_ms / 1e3;
        let free = f64::from(users) / (think.as_secs_f64() + (1.0 - write_share) * hold);
        // Without a write there is no barrier: 1/0 is no limit.
        let barrier = 1.0 / (write_share * hold);
        let limited = barrier.min(free);
        let ratio = free / limited;
        let sentence = if write_share == 0.0 {
            format!(
                "Without writes no reader waits for another: {} get up to {} requests a second \
                 whether guards are held or not.",
                figures::things(users.into(), "user"),
                figures::count(free.round()),
            )
        } else {
            format!(
                "With {} of writes, each a barrier of {} ms, at most {} requests a second pass; \
                 with guards that end early, {} get up to {}: {} times as many.",
                figures::percent(write_share),
                figures::count(self.hold_ms),
                figures::count(limited.round()),
                figures::things(users.into(), "user"),
                figures::count(free.round()),
                figures::ratio(ratio)
            )
        };
        Prediction {
            problem: Some(limited),
            solution: Some(free),
            ratio,
            sentence,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELD: Barrier = Barrier { hold_ms: 50.0 };

    fn predicted(write_share: f64) -> (f64, f64) {
        let predicted = HELD.predicted(1_000, Duration::ZERO, write_share);
        (
            predicted.problem.expect("a bound"),
            predicted.solution.expect("a bound"),
        )
    }

    #[test]
    fn reads_alone_wait_for_nobody() {
        let (problem, solution) = predicted(0.0);
        assert!((problem - 20_000.0).abs() < 1e-6 && (solution - problem).abs() < 1e-6);
    }

    #[test]
    fn every_write_is_a_barrier() {
        let (problem, _) = predicted(0.01);
        assert!((problem - 2_000.0).abs() < 0.1, "{problem}");
        let (problem, solution) = predicted(0.05);
        assert!((problem - 400.0).abs() < 0.1, "{problem}");
        assert!((solution - 21_052.6).abs() < 0.1, "{solution}");
    }

    #[test]
    fn few_users_do_not_meet_the_barrier() {
        let predicted = HELD.predicted(2, Duration::from_secs(1), 0.01);
        assert!((predicted.ratio - 1.0).abs() < 1e-9);
    }
}
