//! Requests to a chapter's server, as `chapter.toml` describes them: used by the embedded generator, k6 and
//! Locust alike.

use engine::traffic::{Expected, Request, Route, Traffic};
use serde::{Deserialize, Serialize};

use crate::measurement::checked;

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
    /// Makes the request `GET path`, which must answer `answer`.
    pub fn get(path: &str, answer: &str) -> Self {
        Self {
            method: get(),
            path: path.to_owned(),
            body: None,
            answer: answer.to_owned(),
        }
    }

    /// Returns this request as a share (0 to 1) of all that users send.
    pub fn route(&self, share: f64) -> Route {
        Route::of(self.into(), share)
    }

    /// Makes a load of `users` users who send only this request, without a pause, for one second.
    pub fn by(&self, users: u32) -> Traffic {
        Traffic::closed([self.route(1.0)], users)
    }
}

fn get() -> String {
    "GET".to_owned()
}

impl From<&Exchange> for Request {
    fn from(exchange: &Exchange) -> Self {
        let body = exchange.body.as_deref();
        let kind = body.map(|body| content_type(body.as_bytes()));
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

/// Returns the content type of a body for its header, by the first byte.
pub fn content_type(body: &[u8]) -> &'static str {
    match body {
        [b'{' | b'[', ..] => "application/json",
        _ => "text/plain; charset=utf-8",
    }
}
