//! What one generator thread saw: only answers within the span are recorded, every fault is.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use hdrhistogram::{CreationError, Histogram};

use super::failure::Failure;
use super::rate::Completions;
use measurement::outcome::Latency;

/// One thread's (after [`Record::merge`] all threads') figures.
#[derive(Debug)]
pub(super) struct Record {
    start: Instant,
    end: Instant,
    routes: Vec<RouteTimes>,
    pub(super) completions: Completions,
    pub(super) per_second: Vec<u64>,
    failures: HashMap<Failure, u64>,
    pub(super) wrong_answers: u64,
    pub(super) first_wrong_answer: Option<String>,
    /// Sent, and neither answered nor failed.
    pub(super) in_flight: u64,
}

/// Latencies of the right answers of one route.
#[derive(Debug)]
pub(super) struct RouteTimes {
    /// Right answers, those before and after the span included.
    pub(super) right_in_all: u64,
    pub(super) latency: Histogram<u64>,
    /// Open loop only.
    pub(super) service: Option<Histogram<u64>>,
}

impl Record {
    /// For the span from `start` to `end`, of so many routes. Latencies have three significant
    /// digits from 1 us up.
    pub(super) fn new(
        start: Instant,
        end: Instant,
        time_out: Duration,
        open_loop: bool,
        routes: usize,
    ) -> Result<Self, CreationError> {
        // In an open loop a request can be overdue for as long as the whole load.
        let longest = (time_out + (end - start)).max(Duration::from_secs(120)) * 2;
        let histogram = || latencies(longest);
        let span = end - start;
        let seconds = span.as_secs() + u64::from(span.subsec_nanos() > 0);
        Ok(Self {
            start,
            end,
            routes: (0..routes)
                .map(|_| {
                    Ok(RouteTimes {
                        right_in_all: 0,
                        latency: histogram()?,
                        service: open_loop.then(histogram).transpose()?,
                    })
                })
                .collect::<Result<_, CreationError>>()?,
            completions: Completions::default(),
            per_second: vec![0; usize::try_from(seconds).unwrap_or(0)],
            failures: HashMap::new(),
            wrong_answers: 0,
            first_wrong_answer: None,
            in_flight: 0,
        })
    }

    /// A right answer of `route` now, wanted at `due` and asked for at `sent`.
    pub(super) fn right(&mut self, route: usize, due: Instant, sent: Instant) {
        self.routes[route].right_in_all += 1;
        let Some(now) = self.completed() else { return };
        let times = &mut self.routes[route];
        times.latency.saturating_record(nanoseconds(now - due));
        if let Some(service) = &mut times.service {
            service.saturating_record(nanoseconds(now - sent));
        }
    }

    /// Counts a right answer; the moment, if it lies within the span.
    fn completed(&mut self) -> Option<Instant> {
        let now = Instant::now();
        if now < self.start {
            let before = (self.start - now).as_secs_f64();
            self.completions.note_before(-before);
            return None;
        }
        if now >= self.end {
            return None;
        }
        let moment = now - self.start;
        self.completions.note(moment.as_secs_f64());
        let second = usize::try_from(moment.as_secs()).unwrap_or(usize::MAX);
        if let Some(count) = self.per_second.get_mut(second) {
            *count += 1;
        }
        Some(now)
    }

    /// An answer with the status and without the body that is expected.
    pub(super) fn wrong(&mut self, body: &[u8]) {
        self.wrong_answers += 1;
        self.first_wrong_answer
            .get_or_insert_with(|| shortened(body));
    }

    /// No answer, or one with another status.
    pub(super) fn failed(&mut self, failure: Failure) {
        *self.failures.entry(failure).or_default() += 1;
    }

    /// Failed requests so far.
    pub(super) fn failure_count(&self) -> u64 {
        self.failures.values().sum()
    }

    /// Adds what another thread saw over the same span.
    pub(super) fn merge(&mut self, other: Self) {
        for (mine, others) in self.routes.iter_mut().zip(&other.routes) {
            mine.right_in_all += others.right_in_all;
            // Both histograms have the same bounds, so that adding them cannot fail.
            let _ = mine.latency.add(&others.latency);
            if let (Some(mine), Some(others)) = (&mut mine.service, &others.service) {
                let _ = mine.add(others);
            }
        }
        self.completions.merge(&other.completions);
        for (mine, others) in self.per_second.iter_mut().zip(other.per_second) {
            *mine += others;
        }
        for (failure, count) in other.failures {
            *self.failures.entry(failure).or_default() += count;
        }
        self.wrong_answers += other.wrong_answers;
        self.first_wrong_answer = self.first_wrong_answer.take().or(other.first_wrong_answer);
        self.in_flight += other.in_flight;
    }

    /// Right answers of all routes, those before and after the span included.
    pub(super) fn right_in_all(&self) -> u64 {
        self.routes.iter().map(|route| route.right_in_all).sum()
    }

    pub(super) fn errors(&self) -> BTreeMap<String, u64> {
        self.failures
            .iter()
            .map(|(failure, count)| (failure.to_string(), *count))
            .collect()
    }

    /// Median and 99th percentile of all routes together so far, in nanoseconds.
    pub(super) fn so_far(&self) -> Option<(u64, u64)> {
        let mut all = self.routes.first()?.latency.clone();
        for other in &self.routes[1..] {
            let _ = all.add(&other.latency);
        }
        (!all.is_empty()).then(|| (all.value_at_quantile(0.5), all.value_at_quantile(0.99)))
    }

    pub(super) fn into_routes(self) -> Vec<RouteTimes> {
        self.routes
    }
}

/// A histogram up to `longest`, with three significant digits from 1 us up.
pub(super) fn latencies(longest: Duration) -> Result<Histogram<u64>, CreationError> {
    Histogram::new_with_bounds(1_000, nanoseconds(longest), 3)
}

/// The points of a percentile plot, dense where people look and at the tail.
const QUANTILES: [f64; 21] = [
    0.0, 0.05, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.975, 0.99,
    0.995, 0.999, 0.9999, 1.0,
];

pub(super) fn summary(histogram: &Histogram<u64>) -> Latency {
    if histogram.is_empty() {
        return Latency::default();
    }
    let ms = |nanoseconds: u64| nanoseconds as f64 / 1e6;
    Latency {
        mean_ms: histogram.mean() / 1e6,
        min_ms: ms(histogram.min()),
        max_ms: ms(histogram.max()),
        quantiles: QUANTILES
            .iter()
            .map(|&quantile| (quantile, ms(histogram.value_at_quantile(quantile))))
            .collect(),
    }
}

pub(super) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn shortened(body: &[u8]) -> String {
    const MOST: usize = 200;
    let text = String::from_utf8_lossy(&body[..body.len().min(MOST)]).into_owned();
    if body.len() > MOST {
        format!("{text}… ({} bytes)", body.len())
    } else {
        text
    }
}
