//! What is sent to a server: one definition a chapter, used by the embedded
//! generator, k6 and Locust alike.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The request that every user repeats, and the answer that proves it was served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exchange {
    /// HTTP method, upper case.
    #[serde(default = "get")]
    pub method: String,
    /// Path and query, starting with `/`.
    pub path: String,
    /// Request body, if any.
    #[serde(default)]
    pub body: Option<String>,
    /// The exact body of a right answer; any other makes the run invalid.
    pub answer: String,
}

fn get() -> String {
    "GET".to_owned()
}

/// When a user sends the next request.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Closed loop: `think` after the answer to the one before. Throughput
    /// sinks with the server's latency, which a closed loop therefore hides.
    Closed {
        /// Pause between an answer and the user's next request.
        think: Duration,
    },
    /// Open loop: all users together send this many requests a second on a
    /// fixed schedule, whatever the answers do. Latency counts from the
    /// scheduled moment, so it is corrected for coordinated omission.
    Open {
        /// Requests a second over all users.
        per_second: f64,
    },
}

/// A whole load: exchange, users, arrivals and how long.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// What each user sends.
    pub exchange: Exchange,
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
