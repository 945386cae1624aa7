//! What every variant of a chapter must do, whatever it gains: promises, as data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::checked;

/// One promise: requests whose answers, and counters whose values, must be the problem's. The
/// problem is slow but right.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Promise {
    /// What is promised, as a learner reads it.
    #[serde(deserialize_with = "checked::words")]
    pub name: String,
    /// Asked of a fix alone, and judged last: that the fault is gone elsewhere, too, than under the load
    /// of a check. The problem would break it, and is not asked: every request must be answered with
    /// success.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_fix: bool,
    /// Arguments of the server that it is tried on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// Worker threads of the server's runtime, where its code does not say how many: with one for each
    /// of few CPUs, a race between two threads would hide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<u32>,
    /// The data that it is tried on, where a request has to know them; unforeseen data otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_seed: Option<u64>,
    /// So many seconds an answer may take, where that is promised.
    #[serde(
        default,
        deserialize_with = "checked::whole_seconds_if_any",
        skip_serializing_if = "Option::is_none"
    )]
    pub time_out_s: Option<u64>,
    /// What is sent, one after the other on one connection.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<Request>,
    /// So many users do that side by side.
    #[serde(default = "once", deserialize_with = "checked::some")]
    pub users: u32,
    /// Each of them so often. More than once means: without waiting for an answer in between, so that
    /// the server is never idle. Of what several users are answered so, the statuses are compared and not
    /// the bodies. Users who hang up do so, and come again.
    #[serde(default = "once", deserialize_with = "checked::some")]
    pub times: u32,
    /// So many milliseconds after one another the users begin who wait for each answer: without them all
    /// are at the same place of their requests.
    #[serde(
        default,
        deserialize_with = "checked::milliseconds_if_any",
        skip_serializing_if = "Option::is_none"
    )]
    pub apart_ms: Option<u64>,
    /// And so many milliseconds pass between the requests of a user, who waits for each answer: what is kept
    /// open for the next one has to be kept that long.
    #[serde(
        default,
        deserialize_with = "checked::milliseconds_if_any",
        skip_serializing_if = "Option::is_none"
    )]
    pub pause_ms: Option<u64>,
    /// They hang up after so many milliseconds instead of waiting for their answers.
    #[serde(
        default,
        deserialize_with = "checked::milliseconds_if_any",
        skip_serializing_if = "Option::is_none"
    )]
    pub hang_up_after_ms: Option<u64>,
    /// And each time so many milliseconds later than the time before: when the moment comes that matters
    /// depends on the machine.
    #[serde(
        default,
        deserialize_with = "checked::milliseconds_if_any",
        skip_serializing_if = "Option::is_none"
    )]
    pub later_by_ms: Option<u64>,
    /// An answer to one of them costs so much at least of the CPU time that it costs alone: whoever
    /// shares an answer pays for a part of it.
    #[serde(
        default,
        deserialize_with = "checked::positive_if_any",
        skip_serializing_if = "Option::is_none"
    )]
    pub cpu_of_one_at_least: Option<f64>,
    /// What is asked when they are done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub then: Vec<Request>,
    /// Counters on `/metrics` that must come out as the problem's do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<String>,
    /// Counters that must come to nine tenths of the problem's at least: how many requests are
    /// served side by side. One in ten may come late on a busy machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at_least: Vec<String>,
    /// Metrics that must come to so much: what becomes possible side by side.
    #[serde(
        default,
        deserialize_with = "checked::limits",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub reaches: BTreeMap<String, f64>,
    /// Metrics that must not exceed a limit, which the exercise's text states.
    #[serde(
        default,
        deserialize_with = "checked::limits",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub at_most: BTreeMap<String, f64>,
}

impl Promise {
    /// What of it cannot be tried, in words that go on after its name.
    pub(crate) fn contradiction(&self) -> Option<&'static str> {
        let compares = !self.counts.is_empty() || !self.at_least.is_empty();
        if self.users.checked_mul(self.times).is_none() {
            Some("has more requests than can be numbered; write fewer `users` or `times`")
        } else if self.of_fix && compares {
            Some(
                "is asked `of_fix` alone, so there is no problem to compare with; write `reaches` or \
                 `at_most` instead of `counts` or `at_least`",
            )
        } else {
            None
        }
    }
}

fn once() -> u32 {
    1
}

/// A request in a line: `GET /path`, or `POST /path body`. `{n}` in path and body stands for the
/// request's number among all of its promise, counted from 0. `{ff}` in a body stands for a byte that
/// no text has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Request {
    /// HTTP method, upper case.
    pub method: String,
    /// Path and query, starting with `/`.
    pub path: String,
    /// What is sent along, if anything.
    pub body: Option<String>,
}

impl Request {
    /// The request with this number.
    #[must_use]
    pub fn numbered(&self, n: u32) -> Self {
        let filled = |text: &str| text.replace("{n}", &n.to_string());
        Self {
            method: self.method.clone(),
            path: filled(&self.path),
            body: self.body.as_deref().map(filled),
        }
    }

    /// The body as it is sent; empty if there is none.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let body = self.body.as_deref().unwrap_or_default();
        let parts: Vec<&[u8]> = body.split("{ff}").map(str::as_bytes).collect();
        parts.join(&0xff)
    }
}

impl TryFrom<String> for Request {
    type Error = String;

    fn try_from(line: String) -> Result<Self, String> {
        let mut parts = line.splitn(3, ' ');
        let (method, path) = (parts.next(), parts.next());
        match (method, path) {
            (Some(method), Some(path))
                if path.starts_with('/') && method.bytes().all(|b| b.is_ascii_uppercase()) =>
            {
                Ok(Self {
                    method: method.to_owned(),
                    path: path.to_owned(),
                    body: parts.next().map(str::to_owned),
                })
            }
            _ => Err(format!(
                "`{line}` is no request; write `GET /path` or `POST /path body`"
            )),
        }
    }
}

impl From<Request> for String {
    fn from(request: Request) -> Self {
        request.to_string()
    }
}

impl std::fmt::Display for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.method, self.path)?;
        self.body.iter().try_for_each(|body| write!(f, " {body}"))
    }
}

/// A promise that was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// What was promised.
    pub name: String,
    /// As in [`Promise::of_fix`].
    pub of_fix: bool,
    /// How it was broken, in a phrase; `None` if it was kept.
    pub broken: Option<String>,
    /// The server's first panic meanwhile, as it printed it.
    pub panic: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_has_the_requests_number_and_need_not_be_text() {
        let request =
            Request::try_from("POST /topics/{n} a {n}{ff}".to_owned()).expect("a request");
        let seventh = request.numbered(7);
        assert_eq!(seventh.path, "/topics/7");
        assert_eq!(seventh.bytes(), b"a 7\xff");
        let get = Request::try_from("GET /".to_owned()).expect("a request");
        assert_eq!(get.bytes(), b"");
    }
}
