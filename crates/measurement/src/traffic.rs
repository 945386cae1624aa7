//! The load of any service: several requests by weight, each with values that vary. A chapter's
//! [`Load`] is the case of one request, or of one that reads and one that writes.

use std::sync::Arc;
use std::time::Duration;

use crate::load::{Arrivals, Exchange, Load};

/// A whole load: what is sent, by how many users, when and for how long.
#[derive(Debug, Clone, PartialEq)]
pub struct Traffic {
    /// What users send, each by its weight. At least one.
    pub routes: Arc<[Route]>,
    /// What is asked beside it, if anything.
    pub bystander: Option<Paced>,
    /// Simultaneous users, each with a connection of its own.
    pub users: u32,
    /// Closed or open loop.
    pub arrivals: Arrivals,
    /// Whether a user keeps its connection (`true`) or opens one a request.
    pub keep_alive: bool,
    /// Loaded but not recorded, at the start.
    pub warm_up: Duration,
    /// Recorded.
    pub duration: Duration,
    /// A request without an answer for this long is an error.
    pub time_out: Duration,
    /// Draws the values of the requests: the same seed, the same values for each user.
    pub seed: u64,
}

/// Requests of one kind, told together.
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    /// What it is called in reports: `GET /checkout/{1..5000}`.
    pub name: String,
    /// How often it is sent, in proportion to the other routes.
    pub weight: f64,
    /// One for each value that the request may have; users draw among them. At least one.
    pub requests: Vec<Request>,
}

/// A route in an open loop of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Paced {
    /// What is asked.
    pub route: Route,
    /// Requests per second; latency counts from the scheduled moment.
    pub per_second: f64,
}

/// One request and the answer that is right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// HTTP method, upper case.
    pub method: String,
    /// Path and query, starting with `/`.
    pub path: String,
    /// Name and value. Those of the connection and the body's length are not among them; `host`
    /// and `user-agent` take the place of the generator's own.
    pub headers: Vec<(String, String)>,
    /// Request body, if any.
    pub body: Option<String>,
    /// What answers it rightly.
    pub expected: Expected,
}

/// The right answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// Its status code.
    pub status: u16,
    /// Its exact body; `None` where any will do.
    pub body: Option<Vec<u8>>,
    /// Other statuses that are right by design, with whatever body: that of a service that sheds load.
    pub allowed: Arc<[u16]>,
}

impl Expected {
    /// This status, and no other.
    pub fn of(status: u16, body: Option<Vec<u8>>) -> Self {
        Self {
            status,
            body,
            allowed: Arc::default(),
        }
    }

    /// Whether an answer with this status is right, as far as its status says.
    pub fn has(&self, status: u16) -> bool {
        status == self.status || self.allows(status)
    }

    /// Whether this is one of the other statuses that are right.
    pub fn allows(&self, status: u16) -> bool {
        self.allowed.contains(&status)
    }
}

impl From<&Exchange> for Request {
    fn from(exchange: &Exchange) -> Self {
        let kind = exchange.content_type();
        Self {
            method: exchange.method.clone(),
            path: exchange.path.clone(),
            headers: kind
                .map(|kind| ("content-type".to_owned(), kind.to_owned()))
                .into_iter()
                .collect(),
            body: exchange.body.clone(),
            expected: Expected::of(200, Some(exchange.answer.clone().into_bytes())),
        }
    }
}

impl Route {
    /// The same request each time.
    pub fn of(exchange: &Exchange, weight: f64) -> Self {
        Self {
            name: format!("{} {}", exchange.method, exchange.path),
            weight,
            requests: vec![exchange.into()],
        }
    }
}

impl From<&Load> for Traffic {
    /// The first route is the load's own, the second that of its writes.
    fn from(load: &Load) -> Self {
        let writes = load.writes.as_ref();
        let share = writes.map_or(0.0, |writes| writes.share);
        let own = Route::of(&load.exchange, 1.0 - share);
        let written = writes.map(|writes| Route::of(&writes.exchange, share));
        Self {
            routes: [own].into_iter().chain(written).collect(),
            bystander: load.bystander.as_ref().map(|bystander| Paced {
                route: Route::of(&bystander.exchange, 1.0),
                per_second: bystander.per_second,
            }),
            users: load.users,
            arrivals: load.arrivals,
            keep_alive: load.keep_alive,
            warm_up: load.warm_up,
            duration: load.duration,
            time_out: load.time_out,
            seed: 0,
        }
    }
}
