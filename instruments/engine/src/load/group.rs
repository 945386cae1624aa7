//! Users of one generator thread that share a script: those of the load, or its bystanders'.

use std::cell::RefCell;
use std::rc::Rc;
use std::slice;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::connection::largest;
use super::error::GeneratorError;
use super::pieces::Arrived;
use super::record::Record;
use super::request;
use super::schedule::{Moments, Schedule};
use super::shared::Shared;
use super::tally::Tally;
use super::user::{self, Behavior, Mix, PlannedRequest, PlannedRoute, Script};
use crate::bodies::Right;
use crate::traffic::{Arrivals, Expected, Paced, Phase, Route, Spacing};

/// Number of connections for a bystander's requests. So many may be overdue at once without delaying the next. Beyond
/// them, latency still counts from the scheduled moment.
const BYSTANDER_USERS: u32 = 64;

/// Random streams of the moments of the load and of its bystander. The streams below them draw the users' values.
const LOAD: u64 = 1 << 40;
const BYSTANDER: u64 = 1 << 41;

/// Users with one script, before they come.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) script: Rc<Script>,
    /// Open loop only.
    schedule: Option<Rc<Schedule>>,
    users: u32,
    think: Duration,
}

impl Group {
    /// Creates the users of the load itself.
    pub(super) fn of_load(shared: &Shared<'_>, index: usize) -> Result<Self, GeneratorError> {
        let load = shared.load;
        let (schedule, think) = match load.arrivals {
            Arrivals::Closed { think } => (None, think),
            Arrivals::Open {
                per_second,
                spacing,
            } => (
                Some(schedule(
                    shared,
                    index,
                    per_second,
                    spacing,
                    LOAD,
                    &load.phases,
                )),
                Duration::ZERO,
            ),
        };
        let end = shared.timeline.end;
        let mut script = script(
            shared,
            &load.routes,
            schedule.is_some(),
            load.has_pieces,
            end,
        )?;
        script.clients = load.clients.map(Behavior::of);
        script.record.get_mut().tally = Tally::of(load, shared.timeline.all_here);
        Ok(Self {
            script: Rc::new(script),
            schedule,
            users: load.users,
            think,
        })
    }

    /// Creates the connections of the load's bystander.
    pub(super) fn of_bystander(
        shared: &Shared<'_>,
        index: usize,
        bystander: &Paced,
    ) -> Result<Self, GeneratorError> {
        let route = slice::from_ref(&bystander.route);
        Ok(Self {
            script: Rc::new(script(shared, route, true, false, shared.timeline.closes)?),
            schedule: Some(schedule(
                shared,
                index,
                bystander.per_second,
                bystander.spacing,
                BYSTANDER,
                &Arc::default(),
            )),
            users: BYSTANDER_USERS,
            think: Duration::ZERO,
        })
    }

    /// Lets this thread's users come, one after the other. Call within the thread's runtime.
    pub(super) fn spawn(&self, shared: &Shared<'_>, index: usize) {
        let ramp = shared.timeline.all_here - shared.timeline.begin;
        for number in (0..self.users).skip(index).step_by(shared.threads) {
            let share = f64::from(number) / f64::from(self.users);
            let first = shared.timeline.begin + ramp.mul_f64(share);
            let script = Rc::clone(&self.script);
            if let Some(schedule) = self.schedule.clone() {
                tokio::task::spawn_local(async move {
                    user::open_loop(&script, number, first, &schedule).await;
                });
            } else {
                let think = self.think;
                tokio::task::spawn_local(async move {
                    user::closed_loop(&script, number, first, think).await;
                });
            }
        }
        if let Some(schedule) = self.schedule.clone() {
            tokio::task::spawn_local(async move { schedule.keep().await });
        }
    }

    /// Returns whether requests that were due before the end of the recorded span wait for their answers.
    pub(super) fn is_waiting(&self, shared: &Shared<'_>) -> bool {
        let is_unsent = match &self.schedule {
            Some(schedule) => schedule.next_due() < shared.timeline.end,
            None => false,
        };
        is_unsent || self.script.record.borrow().under_way > 0
    }

    /// Returns the figures of the users, once their runtime is gone.
    pub(super) fn into_record(self) -> Result<Record, GeneratorError> {
        let Some(script) = Rc::into_inner(self.script) else {
            return Err(GeneratorError::Thread(
                "a user outlived its runtime".to_owned(),
            ));
        };
        let mut record = script.record.into_inner();
        if let Some(schedule) = self.schedule {
            // No user was free to send them, so nothing has decided which routes they are for.
            let mut routes = Mix::new(&script.routes, 0);
            for due in schedule.overdue() {
                let route = routes.next(&script.routes);
                record.unanswered(route, due, None);
                record.arrived(route, due, &Arrived::nothing(), false);
            }
        }
        Ok(record)
    }
}

fn script(
    shared: &Shared<'_>,
    routes: &[Route],
    open_loop: bool,
    has_pieces: bool,
    closes: Instant,
) -> Result<Script, GeneratorError> {
    let load = shared.load;
    let timeline = shared.timeline;
    let record = Record::new(
        timeline.record_from,
        timeline.end,
        closes,
        load.time_out,
        open_loop,
        has_pieces,
        routes.len(),
    )
    .map_err(|error| GeneratorError::Thread(error.to_string()))?;
    let weights: f64 = routes.iter().map(|route| route.weight).sum();
    let mut planned_routes = Vec::new();
    for route in routes {
        planned_routes.push(planned(shared, route, weights)?);
    }
    Ok(Script {
        target: shared.target.clone(),
        routes: planned_routes,
        seed: load.seed,
        keep_alive: load.keep_alive,
        has_pieces,
        clients: None,
        time_out: load.time_out,
        largest_answer: largest(load.users),
        record: RefCell::new(record),
    })
}

fn planned(
    shared: &Shared<'_>,
    route: &Route,
    weights: f64,
) -> Result<PlannedRoute, GeneratorError> {
    let mut requests = Vec::new();
    for request in &route.requests {
        requests.push(PlannedRequest {
            request: request::prepare(&shared.target, request, shared.load.keep_alive)?,
            expected: Expected {
                body: None,
                ..request.expected.clone()
            },
            body: Right::of(&request.expected),
        });
    }
    Ok(PlannedRoute {
        share: route.weight / weights,
        requests,
    })
}

/// Returns the schedule of this thread's share of `per_second`. With even steps the threads take turns. A Poisson
/// process that is split at random is as many independent ones.
fn schedule(
    shared: &Shared<'_>,
    index: usize,
    per_second: f64,
    spacing: Spacing,
    of: u64,
    phases: &Arc<[Phase]>,
) -> Rc<Schedule> {
    let phases = Arc::clone(phases);
    let share = per_second / shared.threads as f64;
    let start = shared.timeline.all_here;
    Rc::new(match spacing {
        Spacing::Even => {
            let turn = Duration::from_secs_f64(index as f64 / per_second);
            Schedule::new(start + turn, Moments::even(share), phases)
        }
        Spacing::Poisson => {
            let moments = Moments::poisson(share, shared.load.seed, of + index as u64);
            Schedule::new(start, moments, phases)
        }
    })
}
