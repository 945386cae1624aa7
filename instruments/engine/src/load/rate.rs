//! Right requests per second out of a short span, without the error of counting whole answers.
//!
//! `answers / span` is right on average, but at 20 requests per second a span of 1.5 s holds 29,
//! 30 or 31 of them: an error of 3 % that no repetition of the same phase averages out. So the
//! rate is taken between two answers: from the last one *before* the span to the last one
//! *within* it lie exactly as many gaps as the span has answers. For evenly spaced answers this
//! is exact; for random (Poisson) ones its bias is `1 / answers²`, where dividing by the time
//! from the first answer within the span to the last would be `1 / answers` too high.
//!
//! The edges of the span replace those two answers if the gap there is over twice the longest one inside. Then the
//! server had not started, or had stopped answering, and the silence belongs to the measurement.
//!
//! The edges also replace them if the two ways of counting differ by more than one answer at each edge and a tenth. A
//! machine that stops for half a second in mid-span and again at its end leaves no such gap, and the rest would count
//! for the whole.

/// Moments of right answers, in seconds since the span's start (before it: negative).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Completions {
    pub(super) count: u64,
    /// Moment of the last answer before the span.
    before: Option<f64>,
    /// Moments of the first and last answer within the span.
    within: Option<(f64, f64)>,
    longest_gap: f64,
}

impl Completions {
    /// Notes an answer before the span; moments must rise.
    pub(super) fn note_before(&mut self, moment: f64) {
        self.before = Some(moment);
    }

    /// Notes an answer within the span; moments must rise.
    pub(super) fn note(&mut self, moment: f64) {
        self.count += 1;
        let first = match self.within {
            Some((first, last)) => {
                self.longest_gap = self.longest_gap.max(moment - last);
                first
            }
            None => moment,
        };
        self.within = Some((first, moment));
    }

    /// Adds the answers of another thread. The longest gap of the two together is at most the longer.
    pub(super) fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.before = match (self.before, other.before) {
            (Some(one), Some(two)) => Some(one.max(two)),
            (one, two) => one.or(two),
        };
        self.within = match (self.within, other.within) {
            (Some((first, last)), Some((first2, last2))) => {
                Some((first.min(first2), last.max(last2)))
            }
            (one, two) => one.or(two),
        };
        self.longest_gap = self.longest_gap.max(other.longest_gap);
    }

    /// Returns the answers per second over a span of `span` seconds.
    pub(super) fn per_second(&self, span: f64) -> f64 {
        let Some((first, last)) = self.within else {
            return 0.0;
        };
        let usual = 2.0 * self.longest_gap;
        let from = match self.before {
            Some(before) if first - before <= usual => before,
            _ => 0.0,
        };
        let to = if span - last <= usual { last } else { span };
        let count = self.count as f64;
        let rate = count / (to - from);
        if crate::outcome::belongs_to(rate, count, span) {
            rate
        } else {
            count / span
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns answers at these moments, which rise.
    fn at(moments: impl IntoIterator<Item = f64>) -> Completions {
        let mut completions = Completions::default();
        for moment in moments {
            if moment < 0.0 {
                completions.note_before(moment);
            } else {
                completions.note(moment);
            }
        }
        completions
    }

    /// Returns answers every `gap` seconds from `phase` on, counted in a span of 1.5 s after 1 s.
    fn every(gap: f64, phase: f64, until: f64) -> Completions {
        let moments = std::iter::successors(Some(phase - 1.0), |moment| Some(moment + gap));
        at(moments.take_while(|moment| *moment < until))
    }

    #[test]
    fn even_answers_are_exact_whatever_the_phase() {
        for phase in [0.0, 0.013, 0.0249, 0.04] {
            let rate = every(0.0507, phase, 1.5).per_second(1.5);
            assert!((rate - 1.0 / 0.0507).abs() < 1e-6, "{rate} at {phase}");
        }
    }

    #[test]
    fn random_answers_are_unbiased() {
        use rand::{RngExt, SeedableRng};
        let mut random = rand_pcg::Pcg64::seed_from_u64(7);
        let runs = 20_000;
        let sum: f64 = (0..runs)
            .map(|_| {
                let mut moment = -1.0;
                let moments = std::iter::from_fn(|| {
                    moment -= (1.0 - random.random::<f64>()).ln() / 20.0;
                    (moment < 1.5).then_some(moment)
                });
                at(moments).per_second(1.5)
            })
            .sum();
        let mean = sum / f64::from(runs);
        assert!((mean - 20.0).abs() < 0.2, "mean of {mean}");
    }

    #[test]
    fn a_server_that_stops_answering_is_not_extrapolated() {
        let rate = every(0.001, 0.0, 0.1).per_second(1.5);
        assert!((60.0..75.0).contains(&rate), "{rate}");
    }

    #[test]
    fn pauses_of_the_machine_are_part_of_the_span() {
        // It stops from 0.4 s to 0.7 s, and for good at 1.3 s.
        let pause = |moment: f64| if moment < 0.4 { moment } else { moment + 0.3 };
        let moments = (0..1000).map(|step| pause(f64::from(step) / 1000.0));
        let rate = at([-0.001].into_iter().chain(moments)).per_second(1.5);
        assert!((rate - 1000.0 / 1.5).abs() < 1e-6, "{rate}");
    }

    #[test]
    fn silence_before_the_span_is_not_counted() {
        let moments = (0..15).map(|step| f64::from(step) / 10.0);
        let rate = at([-30.0].into_iter().chain(moments)).per_second(1.5);
        assert!((rate - 10.0).abs() < 0.8);
    }

    #[test]
    fn none_or_one_answer() {
        assert!(at([]).per_second(1.5) == 0.0);
        assert!((at([1.0]).per_second(1.5) - 1.0 / 1.5).abs() < 1e-9);
    }

    #[test]
    fn threads_add_up() {
        let mut both = every(0.1, 0.03, 1.5);
        both.merge(&every(0.1, 0.08, 1.5));
        assert!((both.per_second(1.5) - 20.0).abs() < 0.8);
    }
}
