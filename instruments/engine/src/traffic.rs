//! A load as data: several requests by weight, each with values that vary, and the answers that are right.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

/// A whole load: its requests, users, schedule and length.
#[derive(Debug, Clone, PartialEq)]
pub struct Traffic {
    /// Routes that users request, each by its weight. At least one.
    pub routes: Arc<[Route]>,
    /// Route that is requested beside the load, if any.
    pub bystander: Option<Paced>,
    /// Simultaneous users, each with a connection of its own.
    pub users: u32,
    /// Closed or open loop.
    pub arrivals: Arrivals,
    /// Set if a user keeps its connection; otherwise it opens one per request.
    pub keep_alive: bool,
    /// Set if the times within answers are recorded: to the first byte of the body, and between its pieces.
    pub has_pieces: bool,
    /// Time at the start that is loaded but not recorded.
    pub warm_up: Duration,
    /// Time that is recorded.
    pub duration: Duration,
    /// Rates of an open loop over time, one after the other, as shares of its own; the last one stays. Empty: its own
    /// rate throughout.
    pub phases: Arc<[Phase]>,
    /// A request without an answer for this long is an error.
    pub time_out: Duration,
    /// Behaviour of clients whose answers are late or refused. `None`: they wait until the time-out, and a refused
    /// request is an error unless its status is allowed.
    pub clients: Option<Clients>,
    /// Seed for the values of the requests and for random schedules, the bystander's included. The same seed gives the
    /// same of both.
    pub seed: u64,
}

/// Timing of requests: closed or open loop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Arrivals {
    /// Closed loop: each user pauses for `think` after an answer. A slow server thus lowers the load, which hides
    /// latency.
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
        /// Spacing of the scheduled moments.
        spacing: Spacing,
    },
}

/// Spacing of the moments of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Spacing {
    /// Random, as from users who know nothing of each other; drawn by the load's seed
    Poisson,
    /// Even steps: the kindest form, as no two requests come at once
    Even,
}

/// A part of an open load with a rate of its own.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// Share of the load's own rate: 1.2 for 120 %. Above 0.
    pub share: f64,
    /// Length in seconds, above 0. The first phase begins with the load's warm-up.
    pub seconds: f64,
}

/// Clients that do not wait for ever, as those of a service under overload.
///
/// An answer with one of the statuses that [`Expected::allowed`] names is a refusal then. A refused or late request is
/// no error; [`PhaseOutcome`](crate::outcome::PhaseOutcome) counts both.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clients {
    /// A client without an answer for this long gives up: it closes its connection.
    pub give_up_after: Duration,
    /// Rule for sending a request again that was refused or given up.
    pub retries: Retries,
}

/// Rule for sending a request again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Retries {
    /// Most attempts at one request, the first included. 1: none is sent again.
    pub attempts: u32,
    /// Pause before an attempt but the first.
    pub pause: Pause,
    /// Most retries of all clients together, as a share of first attempts; `None` for no limit. It is a bucket of
    /// tokens: each first attempt adds this share of one, up to ten on each thread of the generator, and each retry takes
    /// one.
    pub budget: Option<f64>,
}

/// Pause before a request is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    /// None: the next attempt follows at once.
    None,
    /// Exponential backoff with full jitter (M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog,
    /// 2015): a random time between zero and `first`, and up to twice as long with each further attempt.
    Backoff {
        /// Longest pause before the second attempt.
        first: Duration,
        /// Longest pause before any attempt.
        longest: Duration,
    },
}

impl Retries {
    /// Sends no request again.
    pub const NONE: Self = Self {
        attempts: 1,
        pause: Pause::None,
        budget: None,
    };

    /// Most retries that a calm time saves up in a budget, on each thread of the generator.
    pub(crate) const MOST_SAVED: f64 = 10.0;
}

/// Requests of one kind, reported together.
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    /// Name in reports, such as `GET /checkout/{1..5000}`.
    pub name: String,
    /// Frequency in proportion to the other routes.
    pub weight: f64,
    /// One for each value that the request may have; users draw among them. At least one.
    pub requests: Vec<Request>,
}

/// A route in an open loop of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Paced {
    /// Requested route.
    pub route: Route,
    /// Requests per second; latency counts from the scheduled moment.
    pub per_second: f64,
    /// Spacing of the scheduled moments.
    pub spacing: Spacing,
}

/// One request and the answer that is right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// HTTP method, upper case.
    pub method: String,
    /// Path and query, starting with `/`.
    pub path: String,
    /// Names and values, without the headers of the connection and the body's length. `host` and `user-agent` replace
    /// the generator's own.
    pub headers: Vec<(String, String)>,
    /// Request body, if any.
    pub body: Option<Vec<u8>>,
    /// Right answer to this request.
    pub expected: Expected,
}

/// The right answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// Its status code.
    pub status: u16,
    /// Its body; `None` if any will do.
    pub body: Option<Vec<u8>>,
    /// Rule for the comparison.
    pub rule: Rule,
    /// Other statuses that count as right with any body, such as those of a service that sheds load.
    pub allowed: Arc<[u16]>,
}

/// Rule for comparing a body with the expected one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rule {
    /// Compared part of an answer, unless `json` applies.
    pub part: Part,
    /// Comparison as JSON: all values in any order of keys, except those that these pointers (RFC 6901) name. `*` in a
    /// pointer stands for every element of an array or every key.
    pub json: Option<Arc<[String]>>,
}

/// Part of an answer that is compared.
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
    /// Expects this status and no other, and this body if there is one.
    pub fn of(status: u16, body: Option<Vec<u8>>) -> Self {
        Self {
            status,
            body,
            rule: Rule::default(),
            allowed: Arc::default(),
        }
    }

    /// Returns whether `status` is the right one or an allowed one.
    pub fn has(&self, status: u16) -> bool {
        status == self.status || self.allows(status)
    }

    /// Returns whether the body is JSON and compared as such.
    pub(crate) fn is_json(&self) -> bool {
        match (&self.rule.json, &self.body) {
            (Some(_), Some(body)) => serde_json::from_slice::<IgnoredAny>(body).is_ok(),
            _ => false,
        }
    }

    /// Returns whether `status` is one of the others that are allowed.
    pub(crate) fn allows(&self, status: u16) -> bool {
        self.allowed.contains(&status)
    }
}

impl Request {
    /// Creates the request `GET path`. Any answer with status 200 is right.
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
    /// Creates a route that sends the same request each time.
    pub fn of(request: Request, weight: f64) -> Self {
        Self {
            name: format!("{} {}", request.method, request.path),
            weight,
            requests: vec![request],
        }
    }
}

impl Traffic {
    /// Creates one second of load by `users` who ask again at once, each on a connection of its own that it keeps. It
    /// is the place to start from: `Traffic { duration, ..Traffic::closed([route], 20) }`.
    pub fn closed(routes: impl IntoIterator<Item = Route>, users: u32) -> Self {
        Self {
            routes: routes.into_iter().collect(),
            bystander: None,
            users,
            arrivals: Arrivals::Closed {
                think: Duration::ZERO,
            },
            keep_alive: true,
            has_pieces: false,
            warm_up: Duration::ZERO,
            duration: Duration::from_secs(1),
            phases: Arc::default(),
            time_out: Duration::from_secs(60),
            clients: None,
            seed: 0,
        }
    }
}

/// Returns a random seed for [`Traffic::seed`] that is short enough to type.
pub fn fresh_seed() -> u32 {
    let keys = RandomState::new();
    u32::try_from(keys.build_hasher().finish() % 1_000_000).unwrap_or_default()
}
