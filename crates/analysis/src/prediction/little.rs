//! Little's law.

use std::time::Duration;

use super::Prediction;
use measurement::figures;
use measurement::law::Little;

pub(super) fn predicted(law: &Little, users: u32, think: Duration) -> Prediction {
    let call = law.call_ms / 1e3;
    let free = f64::from(users) / (think.as_secs_f64() + call);
    let limited = (f64::from(law.problem_in_flight) / call).min(free);
    let ratio = free / limited;
    let calls = if law.problem_in_flight == 1 {
        "one call".to_owned()
    } else {
        format!("{} calls", law.problem_in_flight)
    };
    Prediction {
        problem: Some(limited),
        solution: Some(free),
        ratio,
        sentence: format!(
            "With {calls} of {} ms in flight at a time, at most {} requests per second are \
             answered; with none held back, {} get up to {}: {} times as many.",
            figures::count(law.call_ms),
            figures::count(limited.round()),
            figures::things(users.into(), "user"),
            figures::count(free.round()),
            figures::ratio(ratio)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELD_LOCK: Little = Little {
        call_ms: 50.0,
        problem_in_flight: 1,
    };

    #[track_caller]
    fn close(a: Option<f64>, b: f64) {
        let a = a.expect("a bound");
        assert!((a - b).abs() < 1e-6 * b.abs(), "{a} is not {b}");
    }

    #[test]
    fn a_held_lock_passes_twenty_a_second_whatever_the_users() {
        for users in [1, 200, 3_000] {
            let predicted = super::predicted(&HELD_LOCK, users, Duration::ZERO);
            close(predicted.problem, 20.0);
            close(Some(predicted.ratio), f64::from(users));
        }
    }

    #[test]
    fn the_published_scenario_is_bounded_by_5454_a_second() {
        let predicted = super::predicted(&HELD_LOCK, 3_000, Duration::from_millis(500));
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
        let predicted = super::predicted(&HELD_LOCK, 2, Duration::from_secs(1));
        close(predicted.problem, 2.0 / 1.05);
        close(Some(predicted.ratio), 1.0);
    }
}
