//! One request by itself, sent as a load would send it.

use std::time::{Duration, Instant};

use hyper::{HeaderMap, StatusCode};

use super::connection::{Connection, LARGEST};
use super::failure::Failure;
use super::request;
use super::target::Target;
use super::user::within;
use crate::traffic::{Expected, Request};

/// Reason why a request has no answer, in one phrase.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unanswered {
    /// No whole answer came in time.
    #[error("time_out")]
    TimeOut,
    /// A gRPC call failed with this status.
    #[error("grpc-status {0}")]
    Grpc(u16),
    /// The connection failed, or the server refused.
    #[error("{0}")]
    Failed(String),
}

impl From<Failure> for Unanswered {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::TimeOut => Self::TimeOut,
            Failure::Grpc(status) => Self::Grpc(status),
            other => Self::Failed(other.to_string()),
        }
    }
}

/// Returns the body that `GET path` yields at `target`.
///
/// # Errors
///
/// Returns an error if there is no answer within `time_out`, or one with a status that is no success.
pub fn get(
    target: impl Into<Target>,
    path: &str,
    time_out: Duration,
) -> Result<Vec<u8>, Unanswered> {
    send(target, &Request::get(path), time_out)
}

/// Returns the body that `request` yields at `target`. Does not compare it with the expected one.
///
/// # Errors
///
/// Returns the errors of [`get`].
pub fn send(
    target: impl Into<Target>,
    request: &Request,
    time_out: Duration,
) -> Result<Vec<u8>, Unanswered> {
    let target = target.into();
    // A thread of its own: the caller may be within a runtime, where blocking on another one panics.
    let asked = std::thread::scope(|scope| {
        let asking = scope.spawn(|| ask(&target, request, time_out));
        asking.join()
    });
    let answer = asked.map_err(|_| Unanswered::Failed("the request panicked".to_owned()))??;
    let body = answer.body.unwrap_or_default();
    match StatusCode::from_u16(answer.status) {
        Ok(status) if !status.is_success() => {
            let said = String::from_utf8_lossy(&body);
            Err(Unanswered::Failed(format!("{status}: {}", said.trim())))
        }
        _ => Ok(body),
    }
}

/// Sends `request` on a connection of its own, and returns the answer: status and body, whatever they are. Call it
/// outside of a runtime.
///
/// # Errors
///
/// Returns an error if there is no answer within `time_out`.
pub fn ask(target: &Target, request: &Request, time_out: Duration) -> Result<Expected, Unanswered> {
    let (answer, _) = ask_for_all(target, request, time_out)?;
    Ok(answer)
}

/// Sends `request` as [`ask`] does, and returns the headers of the answer as well.
pub(crate) fn ask_for_all(
    target: &Target,
    request: &Request,
    time_out: Duration,
) -> Result<(Expected, HeaderMap), Unanswered> {
    let prepared = request::prepare(target, request, true)
        .map_err(|error| Unanswered::Failed(error.to_string()))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Unanswered::Failed(error.to_string()))?;
    let mut connection = Connection::new(target.clone(), true, LARGEST).with_headers();
    let exchange = connection.exchange(&prepared);
    let status = runtime.block_on(async { within(Instant::now() + time_out, exchange).await })?;
    let answer = Expected::of(status, Some(connection.body().to_vec()));
    Ok((answer, connection.headers().cloned().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn a_server_that_never_answers_is_told_from_one_that_refuses() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = silent.local_addr().unwrap();
        let soon = Duration::from_millis(50);
        assert_eq!(get(address, "/", soon), Err(Unanswered::TimeOut));
        drop(silent);
        let refused = get(address, "/", HOUR).unwrap_err();
        assert!(matches!(refused, Unanswered::Failed(_)), "{refused}");
    }
}
