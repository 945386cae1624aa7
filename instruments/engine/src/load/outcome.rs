//! Outcome of a load, with the latencies of each route as they were counted.

use std::collections::BTreeMap;
use std::time::Duration;

use super::latencies::Latencies;
use super::record::{Record, RouteLatencies, all};
use crate::outcome::{
    BystanderOutcome, GeneratorFacts, InAll, Latency, Outcome, PhaseOutcome, Unanswered,
};

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
    /// Right answers within the recorded span; of a bystander, also those after it to requests that were due in it.
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
    /// Method and path of the request that it answered.
    pub first_wrong_request: Option<String>,
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
        let completed = record.routes.iter().map(|route| route.latency.count());
        let (first_wrong_answer, first_wrong_request) = record.first_wrong.take().unzip();
        Self {
            completed: completed.sum(),
            right_in_all: record.right_in_all(),
            requests_per_second: record.completions.per_second(seconds),
            errors: record.errors(),
            wrong_answers: record.wrong_answers,
            first_wrong_answer,
            first_wrong_request,
            unfinished: unfinished.sum(),
            per_second: std::mem::take(&mut record.per_second),
            phases: match record.tally {
                Some(tally) => tally.into_phases(),
                None => Vec::new(),
            },
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
    fn unanswered(&self, seconds: f64, users: Option<u32>) -> Option<Unanswered> {
        let mut most: Option<Unanswered> = None;
        for route in &self.routes {
            if let Some(one) = unanswered(route, seconds, users)
                && most.is_none_or(|most| rank(&one) >= rank(&most))
            {
                most = Some(one);
            }
        }
        most
    }
}

/// Returns the rank of unanswered requests: first whether answers stopped, then their number.
fn rank(unanswered: &Unanswered) -> (bool, u64) {
    (unanswered.silent_from_s.is_some(), unanswered.requests)
}

fn unanswered(route: &RouteLatencies, seconds: f64, users: Option<u32>) -> Option<Unanswered> {
    let latency = &route.latency;
    let usual = Duration::from_secs_f64((seconds / 10.0).max(1.0));
    let long = usual.max(2 * latency.longest());
    let (requests, longest) = latency.waiting_longer_than(long);
    let silent = seconds - route.last_answer_s.unwrap_or(0.0);
    let is_silent = silent > long.as_secs_f64() && longest.as_secs_f64() > silent * 0.9;
    let all = match users {
        Some(users) => u64::from(users),
        None => latency.count() + latency.unanswered(),
    };
    if requests == 0 || !is_silent && requests * 200 <= all {
        return None;
    }
    Some(Unanswered {
        requests,
        long_s: long.as_secs_f64(),
        longest_s: longest.as_secs_f64(),
        silent_from_s: if is_silent {
            Some(seconds - silent)
        } else {
            None
        },
    })
}

/// Converts the outcome of a chapter's load, whose first route is read and whose second is written.
impl From<TrafficOutcome> for Outcome {
    fn from(outcome: TrafficOutcome) -> Self {
        let users = outcome.users;
        let clients = if outcome.generator.open_loop {
            None
        } else {
            Some(outcome.generator.users)
        };
        let mut unanswered = users.unanswered(outcome.seconds, clients);
        if let Some(beside) = &outcome.bystander
            && unanswered.is_none()
        {
            unanswered = beside.unanswered(outcome.seconds, None);
        }
        let (reads, (latency, service_latency)) = match users.routes.first() {
            Some(read) => (read.right_in_all, summaries(read)),
            None => Default::default(),
        };
        let writes = users.routes.iter().skip(1);
        Self {
            exit_code: None,
            generator: outcome.generator,
            seconds: outcome.seconds,
            completed: users.completed,
            writes: writes.map(|route| route.latency.count()).sum(),
            requests_per_second: users.requests_per_second,
            errors: users.errors,
            wrong_answers: users.wrong_answers,
            unfinished: users.unfinished,
            unanswered,
            in_all: Some(InAll {
                reads,
                writes: users.right_in_all - reads,
            }),
            latency,
            service_latency,
            per_second: users.per_second,
            first_wrong_answer: users.first_wrong_answer,
            first_wrong_request: users.first_wrong_request,
            bystander: outcome.bystander.map(bystander),
            phases: users.phases,
        }
    }
}

fn bystander(group: GroupOutcome) -> BystanderOutcome {
    let (latency, service_latency) = match group.routes.first() {
        Some(route) => summaries(route),
        None => Default::default(),
    };
    BystanderOutcome {
        completed: group.completed,
        errors: group.errors,
        wrong_answers: group.wrong_answers,
        unfinished: group.unfinished,
        latency,
        service_latency: service_latency.unwrap_or_default(),
    }
}

/// Returns the latencies of a route for a report, and those from the moment when requests were sent, in an open loop.
fn summaries(route: &RouteLatencies) -> (Latency, Option<Latency>) {
    let service = route.service.as_ref();
    (route.latency.summary(), service.map(Latencies::summary))
}
