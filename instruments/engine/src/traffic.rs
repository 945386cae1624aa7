//! A load as data: several requests by weight, each with values that vary, and the answers that are right.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

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
    /// Draws the values of the requests, and when those of an open loop are due: the same seed, the same of both.
    pub seed: u64,
}

/// When a user sends the next request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Arrivals {
    /// Closed loop: `think` after the answer to the one before. Throughput
    /// sinks with the server's latency, which a closed loop therefore hides.
    Closed {
        /// Pause between an answer and the user's next request.
        think: Duration,
    },
    /// Open loop: all users together send this many requests per second on a
    /// schedule, whatever the answers do. Latency counts from the
    /// scheduled moment, so it is corrected for coordinated omission.
    Open {
        /// Requests per second over all users.
        per_second: f64,
        /// How they are spaced.
        spacing: Spacing,
    },
}

/// How the moments of a schedule are spaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Spacing {
    /// At random, as users come who know nothing of each other; drawn by the load's seed
    Poisson,
    /// At even steps: the kindest form, in which no two requests come at once
    Even,
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
    /// How they are spaced.
    pub spacing: Spacing,
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
    pub body: Option<Vec<u8>>,
    /// What answers it rightly.
    pub expected: Expected,
}

/// The right answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// Its status code.
    pub status: u16,
    /// Its body; `None` where any will do.
    pub body: Option<Vec<u8>>,
    /// What of it must be so.
    pub rule: Rule,
    /// Other statuses that are right by design, with whatever body: that of a service that sheds load.
    pub allowed: Arc<[u16]>,
}

/// What of a body must be as expected.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rule {
    /// Of any body.
    pub part: Part,
    /// Of JSON instead: all values, whatever the order of keys, but those that these pointers (RFC 6901) name.
    /// `*` in a pointer is every element of an array, or every key.
    pub json: Option<Arc<[String]>>,
}

/// A part of an answer, which is all that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Part {
    /// Status and body.
    #[default]
    Body,
    /// Status, and size of the body.
    Size,
    /// The status.
    Status,
}

impl Expected {
    /// This status, and no other.
    pub fn of(status: u16, body: Option<Vec<u8>>) -> Self {
        Self {
            status,
            body,
            rule: Rule::default(),
            allowed: Arc::default(),
        }
    }

    /// Whether an answer with this status is right, as far as its status says.
    pub fn has(&self, status: u16) -> bool {
        status == self.status || self.allows(status)
    }

    /// Whether it is JSON, and compared as such.
    pub fn is_json(&self) -> bool {
        let is_json = |body: &[u8]| serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok();
        self.rule.json.is_some() && self.body.as_deref().is_some_and(is_json)
    }

    /// Whether this is one of the other statuses that are right.
    pub fn allows(&self, status: u16) -> bool {
        self.allowed.contains(&status)
    }
}

impl Request {
    /// `GET path`, of which any answer with status 200 is right.
    pub fn get(path: &str) -> Self {
        Self {
            method: "GET".to_owned(),
            path: path.to_owned(),
            headers: Vec::new(),
            body: None,
            expected: Expected::of(200, None),
        }
    }
}

impl Route {
    /// The same request each time.
    pub fn of(request: Request, weight: f64) -> Self {
        Self {
            name: format!("{} {}", request.method, request.path),
            weight,
            requests: vec![request],
        }
    }
}

impl Traffic {
    /// A second of `users` who ask again at once, each on a connection of its own that it keeps.
    /// The place to start from: `Traffic { duration, ..Traffic::closed([route], 20) }`.
    pub fn closed(routes: impl IntoIterator<Item = Route>, users: u32) -> Self {
        Self {
            routes: routes.into_iter().collect(),
            bystander: None,
            users,
            arrivals: Arrivals::Closed {
                think: Duration::ZERO,
            },
            keep_alive: true,
            warm_up: Duration::ZERO,
            duration: Duration::from_secs(1),
            time_out: Duration::from_secs(60),
            seed: 0,
        }
    }
}

/// What kind of text a body is, for its header.
pub fn content_type(body: &[u8]) -> &'static str {
    match body {
        [b'{' | b'[', ..] => "application/json",
        _ => "text/plain; charset=utf-8",
    }
}
