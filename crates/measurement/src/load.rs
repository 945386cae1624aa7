//! What is sent to a server: one definition a chapter, used by the embedded
//! generator, k6 and Locust alike.

use std::time::Duration;

use duel::traffic::{self, Arrivals, Expected, Paced, Request, Route, Spacing, Traffic};
use serde::{Deserialize, Serialize};

use crate::checked;

/// The request that every user repeats, and the answer that proves it was served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exchange {
    /// HTTP method, upper case.
    #[serde(default = "get", deserialize_with = "checked::method")]
    pub method: String,
    /// Path and query, starting with `/`.
    #[serde(deserialize_with = "checked::path")]
    pub path: String,
    /// Request body, if any.
    pub body: Option<String>,
    /// The exact body of a right answer; any other makes the run invalid.
    #[serde(deserialize_with = "checked::words")]
    pub answer: String,
}

impl Exchange {
    /// `GET path`, which must answer `answer`.
    pub fn get(path: &str, answer: &str) -> Self {
        Self {
            method: get(),
            path: path.to_owned(),
            body: None,
            answer: answer.to_owned(),
        }
    }
}

fn get() -> String {
    "GET".to_owned()
}

/// Writes that users mix in among their requests.
#[derive(Debug, Clone, PartialEq)]
pub struct Writes {
    /// What a write sends.
    pub exchange: Exchange,
    /// Share (0 to 1) of all requests that are writes. They lie evenly among the requests, of each
    /// user and of all, and are the same in every run.
    pub share: f64,
}

/// A second, paced request beside the load: how does bystanders fare?
#[derive(Debug, Clone, PartialEq)]
pub struct Bystander {
    /// What is asked.
    pub exchange: Exchange,
    /// Requests per second, in an open loop: latency counts from the scheduled moment.
    pub per_second: f64,
}

/// A whole load: exchange, users, arrivals and how long.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// What each user sends.
    pub exchange: Exchange,
    /// Writes among it, if any.
    pub writes: Option<Writes>,
    /// What is asked beside it, if anything.
    pub bystander: Option<Bystander>,
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
}

impl Load {
    /// A second of `users` who ask again at once, each on a connection of its own that it keeps.
    /// The place to start from: `Load { duration, ..Load::closed(exchange, 20) }`.
    pub fn closed(exchange: Exchange, users: u32) -> Self {
        Self {
            exchange,
            writes: None,
            bystander: None,
            users,
            arrivals: Arrivals::Closed {
                think: Duration::ZERO,
            },
            keep_alive: true,
            warm_up: Duration::ZERO,
            duration: Duration::from_secs(1),
            time_out: Duration::from_secs(60),
        }
    }
}

impl From<&Exchange> for Request {
    fn from(exchange: &Exchange) -> Self {
        let body = exchange.body.as_deref();
        let kind = body.map(|body| traffic::content_type(body.as_bytes()));
        Self {
            method: exchange.method.clone(),
            path: exchange.path.clone(),
            headers: kind
                .map(|kind| ("content-type".to_owned(), kind.to_owned()))
                .into_iter()
                .collect(),
            body: exchange.body.clone().map(String::into_bytes),
            expected: Expected::of(200, Some(exchange.answer.clone().into_bytes())),
        }
    }
}

impl From<&Load> for Traffic {
    /// The first route is the load's own, the second that of its writes.
    fn from(load: &Load) -> Self {
        let writes = load.writes.as_ref();
        let share = writes.map_or(0.0, |writes| writes.share);
        let own = Route::of((&load.exchange).into(), 1.0 - share);
        let written = writes.map(|writes| Route::of((&writes.exchange).into(), share));
        Self {
            routes: [own].into_iter().chain(written).collect(),
            bystander: load.bystander.as_ref().map(|bystander| Paced {
                route: Route::of((&bystander.exchange).into(), 1.0),
                per_second: bystander.per_second,
                spacing: Spacing::Even,
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
