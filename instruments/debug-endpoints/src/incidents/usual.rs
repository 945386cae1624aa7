//! The usual range of a value, learned slowly.

use std::time::Duration;

/// Largest rise of the usual high in a minute, as a share of it and of the floor.
const RISE_A_MINUTE: f64 = 0.3;

/// Time in which the usual high halves while values are lower.
const HALF_LIFE: Duration = Duration::from_secs(12 * 3600);

/// Share of the bounds below which a value that was out of range is in range again.
const BACK: f64 = 0.5;

/// Rule by which a value is out of its usual range.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    /// Multiple of the usual high.
    pub(crate) times: f64,
    /// Least distance from the usual high, in the value's unit.
    pub(crate) floor: f64,
    /// Time for which values are learned before one is judged.
    pub(crate) learning: Duration,
}

/// Usual range of a value.
#[derive(Clone, Debug, Default)]
pub(crate) struct Usual {
    high: f64,
    learned: Duration,
    is_out: bool,
}

impl Usual {
    /// Judges a value that held for `time`, learns from it, and returns whether it is out of the usual range.
    pub(crate) fn is_left_by(&mut self, value: f64, time: Duration, rule: &Rule) -> bool {
        if self.learned < rule.learning {
            self.learned += time;
            self.high = self.high.max(value);
            return false;
        }
        let bound = (rule.times * self.high).max(self.high + rule.floor);
        let back = if self.is_out { BACK } else { 1.0 };
        self.is_out = value > back * bound;
        if value > self.high {
            let minutes = time.as_secs_f64() / 60.0;
            let rise = RISE_A_MINUTE * minutes * (self.high + rule.floor);
            self.high = value.min(self.high + rise);
        } else {
            let halves = time.as_secs_f64() / HALF_LIFE.as_secs_f64();
            self.high = value.max(self.high * 0.5_f64.powf(halves));
        }
        self.is_out
    }

    /// Returns the usual high.
    pub(crate) fn high(&self) -> f64 {
        self.high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const MINUTE: Duration = Duration::from_secs(60);

    fn rule() -> Rule {
        Rule {
            times: 5.0,
            floor: 50.0,
            learning: 10 * MINUTE,
        }
    }

    fn learned(value: f64) -> Usual {
        let mut usual = Usual::default();
        for _ in 0..600 {
            assert!(!usual.is_left_by(value, SECOND, &rule()));
        }
        usual
    }

    #[test]
    fn a_value_is_out_beyond_both_the_multiple_and_the_floor() {
        assert!(!learned(20.0).is_left_by(100.0, SECOND, &rule()));
        assert!(learned(20.0).is_left_by(101.0, SECOND, &rule()));
        // Five times next to nothing is next to nothing.
        assert!(!learned(0.2).is_left_by(50.0, SECOND, &rule()));
        assert!(learned(0.2).is_left_by(51.0, SECOND, &rule()));
    }

    #[test]
    fn nothing_is_judged_while_it_learns() {
        let mut usual = Usual::default();
        assert!(!usual.is_left_by(1.0, 9 * MINUTE, &rule()));
        assert!(!usual.is_left_by(1e6, MINUTE, &rule()));
        assert!((usual.high() - 1e6).abs() < 1.0);
    }

    #[test]
    fn a_value_that_is_out_has_to_come_well_back() {
        let mut usual = learned(20.0);
        assert!(usual.is_left_by(110.0, SECOND, &rule()));
        assert!(usual.is_left_by(60.0, SECOND, &rule()));
        assert!(!usual.is_left_by(45.0, SECOND, &rule()));
        assert!(!usual.is_left_by(90.0, SECOND, &rule()));
    }

    #[test]
    fn a_new_level_becomes_usual_in_minutes_and_is_forgotten_in_days() {
        let mut usual = learned(20.0);
        let mut minutes = 0;
        while usual.is_left_by(400.0, MINUTE, &rule()) {
            minutes += 1;
        }
        assert!((2..15).contains(&minutes), "{minutes}");
        let mut usual = learned(400.0);
        for _ in 0..24 * 60 {
            usual.is_left_by(20.0, MINUTE, &rule());
        }
        assert!((90.0..110.0).contains(&usual.high()), "{}", usual.high());
    }

    #[test]
    fn a_steep_rise_is_not_learned_before_it_is_out() {
        let mut usual = learned(20.0);
        let mut value = 20.0;
        let is_out = (0..60).any(|_| {
            value *= 1.3;
            usual.is_left_by(value, SECOND, &rule())
        });
        assert!(is_out && value < 300.0, "{value}");
    }
}
