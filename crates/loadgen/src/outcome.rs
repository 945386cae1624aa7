//! What came of a load, with the latencies of each route as they were counted.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::error::GeneratorError;
use super::group::GroupRecord;
use super::record::{self, RouteTimes};
use measurement::outcome::{BystanderOutcome, GeneratorFacts, InAll, Latency, Outcome};

/// What came of one load.
#[derive(Debug)]
pub struct TrafficOutcome {
    /// Who measured.
    pub generator: GeneratorFacts,
    /// Recorded span in seconds (without warm-up).
    pub seconds: f64,
    /// What was seen of the load's own routes.
    pub users: GroupOutcome,
    /// What was seen of its bystander, where it has one.
    pub bystander: Option<GroupOutcome>,
}

/// What the users of a load, or those of its bystander, saw.
#[derive(Debug)]
pub struct GroupOutcome {
    /// Right answers within the recorded span.
    pub completed: u64,
    /// Right answers in all, warm-up included.
    pub right_in_all: u64,
    /// Right answers a second, measured from answer to answer.
    pub requests_per_second: f64,
    /// Failed requests (warm-up included) by cause.
    pub errors: BTreeMap<String, u64>,
    /// Answers with a wrong body, warm-up included.
    pub wrong_answers: u64,
    /// The first wrong body, shortened.
    pub first_wrong_answer: Option<String>,
    /// Wanted, and neither answered nor failed when the load ended.
    pub unfinished: u64,
    /// Right answers in each second of the recorded span.
    pub per_second: Vec<u64>,
    /// Latencies of each route, in the order of the load's.
    pub routes: Vec<RouteLatencies>,
}

/// Latencies of the right answers of one route.
#[derive(Debug)]
pub struct RouteLatencies {
    /// Right answers in all, warm-up included.
    pub right_in_all: u64,
    /// In an open loop from the scheduled moment.
    pub latency: Latencies,
    /// Open loop only: from the moment each request was really sent.
    pub service: Option<Latencies>,
}

/// Latencies as they were counted, to three significant digits; several can be put together.
#[derive(Debug, Clone)]
pub struct Latencies(Histogram<u64>);

impl Latencies {
    /// Of answers that another generator counted: milliseconds, and how many took so long.
    ///
    /// # Errors
    ///
    /// When there is no memory for them.
    pub fn of(counted: impl IntoIterator<Item = (f64, u64)>) -> Result<Self, GeneratorError> {
        let mut latencies = record::latencies(Duration::from_secs(3600))
            .map_err(|error| GeneratorError::Thread(error.to_string()))?;
        for (ms, count) in counted {
            let time = Duration::try_from_secs_f64(ms / 1e3).unwrap_or_default();
            latencies.saturating_record_n(record::nanoseconds(time), count);
        }
        Ok(Self(latencies))
    }

    /// How many answers.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The latency that the share `quantile` (0 to 1) of answers does not exceed, in milliseconds;
    /// `None` without answers.
    pub fn at(&self, quantile: f64) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.value_at_quantile(quantile) as f64 / 1e6)
    }

    /// Adds the answers of `other`.
    pub fn add(&mut self, other: &Self) {
        // Longer than this histogram's longest becomes its longest.
        for bar in other.0.iter_recorded() {
            self.0
                .saturating_record_n(bar.value_iterated_to(), bar.count_at_value());
        }
    }

    /// The points that reports show.
    pub fn summary(&self) -> Latency {
        record::summary(&self.0)
    }
}

impl From<RouteTimes> for RouteLatencies {
    fn from(times: RouteTimes) -> Self {
        Self {
            right_in_all: times.right_in_all,
            latency: Latencies(times.latency),
            service: times.service.map(Latencies),
        }
    }
}

impl GroupOutcome {
    pub(super) fn of(group: GroupRecord, seconds: f64) -> Self {
        let unfinished = group.unfinished();
        let mut record = group.record;
        let right_in_all = record.right_in_all();
        Self {
            completed: record.completions.count,
            right_in_all,
            requests_per_second: record.completions.per_second(seconds),
            errors: record.errors(),
            wrong_answers: record.wrong_answers,
            first_wrong_answer: record.first_wrong_answer.take(),
            unfinished,
            per_second: std::mem::take(&mut record.per_second),
            routes: record.into_routes().into_iter().map(Into::into).collect(),
        }
    }

    /// Failed requests of every cause, and wrong answers.
    pub fn faults(&self) -> u64 {
        self.errors.values().sum::<u64>() + self.wrong_answers
    }

    /// The latencies of all routes together; `None` without a route.
    pub fn all(&self) -> Option<Latencies> {
        let (first, others) = self.routes.split_first()?;
        let mut all = first.latency.clone();
        for other in others {
            all.add(&other.latency);
        }
        Some(all)
    }
}

/// Of a chapter's load: its first route is what is read, its second what is written.
impl From<TrafficOutcome> for Outcome {
    fn from(outcome: TrafficOutcome) -> Self {
        let users = outcome.users;
        let mut routes = users.routes.iter();
        let read = routes.next();
        let reads = read.map_or(0, |read| read.right_in_all);
        let in_all = InAll {
            reads,
            writes: users.right_in_all - reads,
        };
        Self {
            exit_code: None,
            generator: outcome.generator,
            seconds: outcome.seconds,
            completed: users.completed,
            writes: routes.map(|route| route.latency.count()).sum(),
            requests_per_second: users.requests_per_second,
            errors: users.errors,
            wrong_answers: users.wrong_answers,
            unfinished: users.unfinished,
            in_all: Some(in_all),
            latency: read.map(|read| read.latency.summary()).unwrap_or_default(),
            service_latency: read
                .and_then(|read| read.service.as_ref())
                .map(Latencies::summary),
            per_second: users.per_second,
            first_wrong_answer: users.first_wrong_answer,
            bystander: outcome.bystander.map(bystander),
        }
    }
}

fn bystander(group: GroupOutcome) -> BystanderOutcome {
    let route = group.routes.first();
    BystanderOutcome {
        completed: group.completed,
        errors: group.errors,
        wrong_answers: group.wrong_answers,
        unfinished: group.unfinished,
        latency: route
            .map(|route| route.latency.summary())
            .unwrap_or_default(),
        service_latency: route
            .and_then(|route| route.service.as_ref())
            .map(Latencies::summary)
            .unwrap_or_default(),
    }
}
