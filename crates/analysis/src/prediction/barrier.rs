//! What a few writes cost where a fair lock is held for long.

use std::time::Duration;

use super::Prediction;
use measurement::figures;
use measurement::law::Barrier;

pub(super) fn predicted(
    law: &Barrier,
    users: u32,
    think: Duration,
    write_share: f64,
) -> Prediction {
    let hold = law.hold_ms / 1e3;
    let free = f64::from(users) / (think.as_secs_f64() + (1.0 - write_share) * hold);
    // Without a write there is no barrier: 1/0 is no limit.
    let barrier = 1.0 / (write_share * hold);
    let limited = barrier.min(free);
    let ratio = free / limited;
    let sentence = if write_share == 0.0 {
        format!(
            "Without writes no reader waits for another: {} get up to {} requests per second \
             whether guards are held or not.",
            figures::things(users.into(), "user"),
            figures::count(free.round()),
        )
    } else {
        format!(
            "With {} of writes, each a barrier of {} ms, at most {} requests per second pass; \
             with guards that end early, {} get up to {}: {} times as many.",
            figures::percent(write_share),
            figures::count(law.hold_ms),
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

#[cfg(test)]
mod tests {
    use super::*;

    const HELD: Barrier = Barrier { hold_ms: 50.0 };

    fn predicted(write_share: f64) -> (f64, f64) {
        let predicted = super::predicted(&HELD, 1_000, Duration::ZERO, write_share);
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
        let predicted = super::predicted(&HELD, 2, Duration::from_secs(1), 0.01);
        assert!((predicted.ratio - 1.0).abs() < 1e-9);
    }
}
