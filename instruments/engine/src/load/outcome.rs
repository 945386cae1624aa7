//! Outcome of a load, with the latencies of each route as they were counted.

use std::collections::BTreeMap;
use std::time::Duration;

use super::latencies::Latencies;
use super::record::{Record, RouteLatencies, all};
use super::tally::Tally;
use crate::outcome::{BystanderOutcome, GeneratorFacts, InAll, Outcome, PhaseOutcome, Unanswered};

/// Outcome of one load.
#[derive(Debug)]
pub struct TrafficOutcome {
    /// Generator that measured.
    pub generator: GeneratorFacts,
    /// Recorded span in seconds (without warm-up).
    pub seconds: f64,
    /// Results of the load's own routes.
    pub users: GroupOutcome,
    /// Results of the load's bystander, if it has one.
    pub bystander: Option<GroupOutcome>,
}

/// Results of the users of a load, or of its bystander.
#[derive(Debug)]
pub struct GroupOutcome {
    /// Right answers within the recorded span.
    pub completed: u64,
    /// Right answers of the whole run, warm-up included.
    pub right_in_all: u64,
    /// Right answers per second, measured from answer to answer.
    pub requests_per_second: f64,
    /// Failed requests (warm-up included) by cause.
    pub errors: BTreeMap<String, u64>,
    /// Answers with a wrong body, warm-up included.
    pub wrong_answers: u64,
    /// The first wrong body, shortened.
    pub first_wrong_answer: Option<String>,
    /// Number of requests that were wanted, and neither answered nor failed when the load ended.
    pub unfinished: u64,
    /// Right answers in each second of the recorded span.
    pub per_second: Vec<u64>,
    /// Latencies of each route, in the order of the load's.
    pub routes: Vec<RouteLatencies>,
    /// Requests by phase of the load, if it has phases or clients that give up.
    pub phases: Vec<PhaseOutcome>,
}

impl GroupOutcome {
    pub(super) fn of(mut record: Record, seconds: f64) -> Self {
        let unfinished = record.routes.iter().map(|route| route.latency.unanswered());
        let unfinished = unfinished.sum();
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
            phases: record.tally.map(Tally::into_phases).unwrap_or_default(),
            routes: record.routes,
        }
    }

    /// Returns the number of failed requests of every cause, and of wrong answers.
    pub fn faults(&self) -> u64 {
        self.errors.values().sum::<u64>() + self.wrong_answers
    }

    /// Returns the latencies of all routes together; `None` without a route.
    pub fn all(&self) -> Option<Latencies> {
        all(&self.routes)
    }

    /// Returns the unanswered requests of the route that has most of them, preferring a route whose answers stopped.
    /// `seconds` is the length of the span. A closed loop gives its number of `users`. Returns `None` if no more
    /// requests are under way than any load leaves behind.
    pub fn unanswered(&self, seconds: f64, users: Option<u32>) -> Option<Unanswered> {
        let of_route = |route: &RouteLatencies| {
            let latency = &route.latency;
            let usual = Duration::from_secs_f64((seconds / 10.0).max(1.0));
            let long = usual.max(2 * latency.longest());
            let (requests, longest) = latency.waiting_longer_than(long);
            let silent = seconds - route.last_answer_s.unwrap_or(0.0);
            let is_silent = silent > long.as_secs_f64() && longest.as_secs_f64() > silent * 0.9;
            let all = users.map_or(latency.count() + latency.unanswered(), u64::from);
            (requests > 0 && (is_silent || requests * 200 > all)).then(|| Unanswered {
                requests,
                long_s: long.as_secs_f64(),
                longest_s: longest.as_secs_f64(),
                silent_from_s: is_silent.then_some(seconds - silent),
            })
        };
        let all = self.routes.iter().filter_map(of_route);
        all.max_by_key(|one| (one.silent_from_s.is_some(), one.requests))
    }
}

/// Converts the outcome of a chapter's load, whose first route is read and whose second is written.
impl From<TrafficOutcome> for Outcome {
    fn from(outcome: TrafficOutcome) -> Self {
        let users = outcome.users;
        let is_closed = !outcome.generator.open_loop;
        let in_all = is_closed.then_some(outcome.generator.users);
        let beside = outcome.bystander.as_ref();
        let unanswered = users
            .unanswered(outcome.seconds, in_all)
            .or_else(|| beside?.unanswered(outcome.seconds, None));
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
            unanswered,
            in_all: Some(in_all),
            latency: read.map(|read| read.latency.summary()).unwrap_or_default(),
            service_latency: read
                .and_then(|read| read.service.as_ref())
                .map(Latencies::summary),
            per_second: users.per_second,
            first_wrong_answer: users.first_wrong_answer,
            bystander: outcome.bystander.map(bystander),
            phases: users.phases,
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
