//! What is sent to a server: one definition a chapter, used by the embedded
//! generator, k6 and Locust alike.

use std::time::Duration;

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

    /// What kind of text the body is, for the header; `None` without a body.
    pub fn content_type(&self) -> Option<&'static str> {
        let body = self.body.as_deref();
        body.map(|body| content_type(body.as_bytes()))
    }
}

/// What kind of text a body is, for its header.
pub fn content_type(body: &[u8]) -> &'static str {
    match body {
        [b'{' | b'[', ..] => "application/json",
        _ => "text/plain; charset=utf-8",
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
    /// fixed schedule, whatever the answers do. Latency counts from the
    /// scheduled moment, so it is corrected for coordinated omission.
    Open {
        /// Requests per second over all users.
        per_second: f64,
    },
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
