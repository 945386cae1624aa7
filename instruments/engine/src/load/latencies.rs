//! Latencies, including those of which only a lower bound is known: the time that the request has waited so far.
//!
//! A load ends while requests are under way, and a recorded span begins while others are. Leaving both out would call a
//! server fast that never answers its slow requests, or answers them after the span.
//!
//! So quantiles come from the product-limit estimator (E. L. Kaplan, P. Meier, "Nonparametric Estimation from
//! Incomplete Observations", JASA 53, 1958). It counts a request for as long as it was watched: from its age when the
//! span began (delayed entry: J. P. Klein, M. L. Moeschberger, *Survival Analysis*, 4.6) to its answer, or to its age
//! when the span ended. If every request began and was answered within the span, this is the usual quantile.
//!
//! One departure: a request that has waited longer than any answer took counts from its beginning. Otherwise users who
//! are stuck since the warm-up would not show beside others who are answered at once.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::outcome::Latency;
use hdrhistogram::{CreationError, Histogram};
use statistics::metric::Quantile;

use super::error::GeneratorError;

/// Latencies of one route to three significant digits; several can be put together.
#[derive(Debug, Clone)]
pub struct Latencies {
    answered: Histogram<u64>,
    /// Ages at the start of the span, for answered requests that had begun before it.
    entered: Histogram<u64>,
    /// Ages at the end of the span, for unanswered requests.
    waiting: Histogram<u64>,
    /// Longest span of the parts, in nanoseconds.
    span: u64,
}

impl Latencies {
    /// Creates empty latencies for a span of this length, in which no request waits longer than `longest`.
    pub(super) fn new(span: Duration, longest: Duration) -> Result<Self, CreationError> {
        // Range from 1 us up.
        let histogram = || Histogram::new_with_bounds(1_000, nanoseconds(longest), 3);
        Ok(Self {
            answered: histogram()?,
            entered: histogram()?,
            waiting: histogram()?,
            span: nanoseconds(span),
        })
    }

    /// Creates latencies from those that another generator counted: milliseconds, and the number of answers that took
    /// so long.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no memory for them.
    pub fn of(counted: impl IntoIterator<Item = (f64, u64)>) -> Result<Self, GeneratorError> {
        let mut latencies = Self::new(Duration::MAX, Duration::from_secs(3600))
            .map_err(|error| GeneratorError::Thread(error.to_string()))?;
        for (ms, count) in counted {
            let time = Duration::try_from_secs_f64(ms / 1e3).unwrap_or_default();
            let answered = &mut latencies.answered;
            answered.saturating_record_n(nanoseconds(time), count);
        }
        Ok(latencies)
    }

    /// Adds an answer after `latency`, of which `before` had passed when the span began.
    pub(super) fn answer(&mut self, latency: Duration, before: Duration) {
        self.answered.saturating_record(nanoseconds(latency));
        if !before.is_zero() {
            self.entered.saturating_record(nanoseconds(before));
        }
    }

    /// Adds a request that had no answer when the span ended, `age` after it was wanted.
    pub(super) fn wait(&mut self, age: Duration) {
        self.waiting.saturating_record(nanoseconds(age));
    }

    /// Adds the latencies of `other`.
    pub(crate) fn add(&mut self, other: &Self) {
        let histograms = [
            (&mut self.answered, &other.answered),
            (&mut self.entered, &other.entered),
            (&mut self.waiting, &other.waiting),
        ];
        for (mine, others) in histograms {
            // Latencies beyond this histogram's longest count as its longest.
            for bar in others.iter_recorded() {
                mine.saturating_record_n(bar.value_iterated_to(), bar.count_at_value());
            }
        }
        self.span = self.span.max(other.span);
    }

    /// Returns the number of answers.
    pub fn count(&self) -> u64 {
        self.answered.len()
    }

    /// Returns the number of requests without an answer when the span ended.
    pub(crate) fn unanswered(&self) -> u64 {
        self.waiting.len()
    }

    /// Returns the longest latency of an answer.
    pub(super) fn longest(&self) -> Duration {
        Duration::from_nanos(self.answered.max())
    }

    /// Returns the number of unanswered requests that have waited longer than `age`, and the longest wait of all.
    pub(super) fn waiting_longer_than(&self, age: Duration) -> (u64, Duration) {
        let beyond = nanoseconds(age).saturating_add(1);
        let waiting = &self.waiting;
        let count = match waiting.len() {
            0 => 0,
            _ => waiting.count_between(beyond, waiting.high()),
        };
        (count, Duration::from_nanos(waiting.max()))
    }

    /// Returns the quantile (0 to 1) of the answers so far alone, in nanoseconds; 0 without any.
    pub(super) fn so_far(&self, quantile: f64) -> u64 {
        self.answered.value_at_quantile(quantile)
    }

    /// Returns the latency that the share `quantile` (0 to 1) of requests does not exceed; `None` without any request.
    pub fn at(&self, quantile: f64) -> Option<Quantile> {
        Some(self.survival()?.at(quantile))
    }

    /// Returns the points that reports show.
    pub fn summary(&self) -> Latency {
        let Some(survival) = self.survival() else {
            return Latency::default();
        };
        let mut latency = Latency {
            mean_ms: survival.mean() / 1e6,
            min_ms: survival.at(0.0).ms,
            max_ms: survival.at(1.0).ms,
            quantiles: Vec::with_capacity(QUANTILES.len()),
            lower_bound_from: None,
        };
        for quantile in QUANTILES {
            let found = survival.at(quantile);
            latency.quantiles.push((quantile, found.ms));
            if found.is_lower_bound && latency.lower_bound_from.is_none() {
                latency.lower_bound_from = Some(quantile);
            }
        }
        latency
    }

    /// Estimates the share of requests that take longer than each age; `None` without any request.
    fn survival(&self) -> Option<Survival> {
        #[derive(Default)]
        struct At {
            entered: u64,
            answered: u64,
            left: u64,
        }
        let longest = self.answered.max();
        let mut ages: BTreeMap<u64, At> = BTreeMap::new();
        let mut at_risk = self.answered.len() - self.entered.len().min(self.answered.len());
        for bar in self.entered.iter_recorded() {
            ages.entry(bar.value_iterated_to()).or_default().entered += bar.count_at_value();
        }
        for bar in self.answered.iter_recorded() {
            ages.entry(bar.value_iterated_to()).or_default().answered += bar.count_at_value();
        }
        for bar in self.waiting.iter_recorded() {
            let (age, count) = (bar.value_iterated_to(), bar.count_at_value());
            ages.entry(age).or_default().left += count;
            match age.saturating_sub(self.span) {
                before if before > 0 && age <= longest => {
                    ages.entry(before).or_default().entered += count;
                }
                _ => at_risk += count,
            }
        }
        let (mut share, mut steps) = (1.0, Vec::new());
        let (last, _) = ages.last_key_value()?;
        let longest_seen = *last as f64;
        for (age, at) in ages {
            at_risk += at.entered;
            if at.answered > 0 {
                share *= at_risk.saturating_sub(at.answered) as f64 / at_risk.max(1) as f64;
                steps.push((age as f64, share));
            }
            at_risk = at_risk.saturating_sub(at.answered + at.left);
        }
        Some(Survival {
            steps,
            longest: longest_seen,
        })
    }
}

/// The product-limit estimate.
struct Survival {
    /// Ages in nanoseconds at which requests were answered, each with the share that takes longer.
    steps: Vec<(f64, f64)>,
    /// The longest age at which a request was seen.
    longest: f64,
}

impl Survival {
    fn at(&self, quantile: f64) -> Quantile {
        // The product has rounding errors, the share of answers has none.
        for (age, remain) in &self.steps {
            if *remain <= 1.0 - quantile + 1e-9 {
                return Quantile {
                    ms: age / 1e6,
                    is_lower_bound: false,
                };
            }
        }
        Quantile {
            ms: self.longest / 1e6,
            is_lower_bound: true,
        }
    }

    /// Returns the mean in nanoseconds. It is too small if requests outlast the longest age.
    fn mean(&self) -> f64 {
        let (mut mean, mut age, mut share) = (0.0, 0.0, 1.0);
        for &(until, remain) in self.steps.iter().chain(&[(self.longest, 0.0)]) {
            mean += share * (until - age);
            (age, share) = (until, remain);
        }
        mean
    }
}

/// The points of a percentile plot, dense where people look and at the tail.
const QUANTILES: [f64; 21] = [
    0.0, 0.05, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.975, 0.99,
    0.995, 0.999, 0.9999, 1.0,
];

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};

    const MS: Duration = Duration::from_millis(1);

    fn of_a_span(span: Duration) -> Latencies {
        Latencies::new(span, Duration::from_secs(240)).unwrap()
    }

    /// Returns what a span of `span` ms shows of requests that are wanted every `step` ms. The first is wanted at
    /// `begin` ms (before the span: below zero), and each takes the next `latency` in ms.
    fn seen(begin: i32, span: i32, step: usize, mut latency: impl FnMut() -> f64) -> Latencies {
        let mut latencies = of_a_span(MS * span.unsigned_abs());
        for due in (begin..span).step_by(step) {
            let (due, latency, end) = (f64::from(due), latency(), f64::from(span));
            if due + latency >= end {
                latencies.wait(MS.mul_f64(end - due));
            } else if due + latency >= 0.0 {
                latencies.answer(MS.mul_f64(latency), MS.mul_f64((-due).max(0.0)));
            }
        }
        latencies
    }

    fn assert_near(latencies: &Latencies, quantile: f64, ms: f64) {
        let seen = latencies.at(quantile).unwrap();
        assert!(
            !seen.is_lower_bound && (seen.ms / ms - 1.0).abs() < 0.08,
            "{quantile}: {seen:?}"
        );
    }

    fn assert_at_least(latencies: &Latencies, quantile: f64, ms: f64) {
        let seen = latencies.at(quantile).unwrap();
        assert!(seen.is_lower_bound && seen.ms >= ms, "{quantile}: {seen:?}");
    }

    #[test]
    fn answers_alone_have_the_usual_quantiles() {
        let latencies = Latencies::of((1_u32..=100).map(|ms| (f64::from(ms), 1))).unwrap();
        for percent in [1_u32, 50, 90, 99, 100] {
            assert_near(&latencies, f64::from(percent) / 100.0, f64::from(percent));
        }
        let summary = latencies.summary();
        assert!((summary.mean_ms - 50.5).abs() < 0.1 && summary.lower_bound_from.is_none());
        assert!(of_a_span(MS).at(0.5).is_none());
    }

    #[test]
    fn what_takes_longer_than_the_span_is_a_lower_bound() {
        // Every fifth takes 3 s, in a span of 1 s.
        let mut number = 0;
        let mut fifth = || {
            number += 1;
            if number % 5 == 0 { 3000.0 } else { 2.0 }
        };
        let short = seen(-300, 1000, 10, &mut fifth);
        assert_near(&short, 0.5, 2.0);
        assert_at_least(&short, 0.9, 1000.0);
        let long = seen(-300, 4000, 10, &mut fifth);
        assert_near(&long, 0.75, 2.0);
        assert_near(&long, 0.9, 3000.0);
    }

    #[test]
    fn a_server_that_stops_or_never_begins_has_no_quick_tail() {
        let mut number = 0;
        let stops = seen(0, 1000, 1, || {
            number += 1;
            if number < 500 { 1.0 } else { f64::INFINITY }
        });
        assert_at_least(&stops, 0.9, 400.0);
        assert_at_least(&seen(0, 1000, 1, || f64::INFINITY), 0.0, 900.0);
    }

    #[test]
    fn users_who_are_stuck_since_the_warm_up_count_beside_those_who_are_not() {
        let mut latencies = seen(0, 1000, 1, || 0.5);
        for _ in 0..50 {
            latencies.wait(MS * 2000);
        }
        assert_near(&latencies, 0.9, 0.5);
        assert_at_least(&latencies, 0.99, 2000.0);
        assert_eq!(latencies.waiting_longer_than(MS * 1000).0, 50);
        assert_eq!(latencies.waiting_longer_than(MS * 3000).0, 0);
    }

    /// Neither requests that began before a short span nor those that go on after it shift the estimate.
    #[test]
    fn quantiles_of_a_steady_service_do_not_hang_on_the_span() {
        let mut random = rand_pcg::Pcg64::seed_from_u64(7);
        let mut exponential = || -(1.0 - random.random::<f64>()).ln() * 500.0;
        let mut all = seen(-10_000, 1000, 1, &mut exponential);
        for _ in 0..20 {
            all.add(&seen(-10_000, 1000, 1, &mut exponential));
        }
        for (quantile, factor) in [(0.5, 0.693), (0.9, 2.303), (0.99, 4.605)] {
            assert_near(&all, quantile, 500.0 * factor);
        }
        assert!((all.summary().mean_ms / 500.0 - 1.0).abs() < 0.05);
    }
}
