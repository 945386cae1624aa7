//! One request by itself, sent as a load would send it.

use std::time::{Duration, Instant};

use hyper::HeaderMap;

use super::connection::{Connection, LARGEST};
use super::request;
use super::target::Target;
use super::user::within;
use crate::traffic::{Expected, Request};

/// Sends `requests` one after the other on a connection that is kept, and returns the answer to each: status and body,
/// whatever they are.
///
/// # Errors
///
/// Returns the cause in a phrase, if a request has no answer within `time_out`.
pub fn ask<'r>(
    target: impl Into<Target>,
    requests: impl IntoIterator<Item = &'r Request>,
    time_out: Duration,
) -> Result<Vec<Expected>, String> {
    let answers = ask_for_all(target, requests, time_out)?;
    Ok(answers.into_iter().map(|(answer, _)| answer).collect())
}

/// Sends `requests` as [`ask`] does, and returns the headers of each answer as well.
pub(crate) fn ask_for_all<'r>(
    target: impl Into<Target>,
    requests: impl IntoIterator<Item = &'r Request>,
    time_out: Duration,
) -> Result<Vec<(Expected, HeaderMap)>, String> {
    let target = target.into();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let mut connection = Connection::new(target.clone(), true, LARGEST).with_headers();
        let mut answers = Vec::new();
        for request in requests {
            let prepared =
                request::prepare(&target, request, true).map_err(|error| error.to_string())?;
            let exchange = connection.exchange(&prepared);
            let status = within(Instant::now() + time_out, exchange)
                .await
                .map_err(|failure| failure.to_string())?;
            let answer = Expected::of(status, Some(connection.body().to_vec()));
            answers.push((answer, connection.headers().cloned().unwrap_or_default()));
        }
        Ok(answers)
    })
}
