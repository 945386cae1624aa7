//! Requests by themselves, sent as a load would send them.

use std::fmt;
use std::time::Duration;

use hyper::{HeaderMap, StatusCode};

use super::connection::{Connection, LARGEST};
use super::failure::Failure;
use super::request;
use super::target::Target;
use crate::traffic::Request;

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
    match StatusCode::from_u16(answer.status) {
        Ok(status) if !status.is_success() => {
            let said = String::from_utf8_lossy(&answer.body);
            Err(Unanswered::Failed(format!("{status}: {}", said.trim())))
        }
        _ => Ok(answer.body),
    }
}

/// Sends `request` on a connection of its own, and returns the whole answer. Call it outside of a runtime.
///
/// # Errors
///
/// Returns an error if there is no answer within `time_out`.
pub fn ask(target: &Target, request: &Request, time_out: Duration) -> Result<Answer, Unanswered> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Unanswered::Failed(error.to_string()))?;
    let mut client = Client::of(target.clone());
    runtime.block_on(async {
        let asked = tokio::time::timeout(time_out, client.ask(request)).await;
        asked.unwrap_or(Err(Unanswered::TimeOut))
    })
}

/// A whole answer, whatever its status.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Vec<u8>,
}

/// A client with a connection of its own, which is kept from request to request. Dropping it, or the future of a
/// request, closes the connection.
pub struct Client {
    target: Target,
    connection: Connection,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// Creates a client whose connection opens with its first request.
    pub fn of(target: impl Into<Target>) -> Self {
        let target = target.into();
        Self {
            connection: Connection::new(target.clone(), true, LARGEST).with_headers(),
            target,
        }
    }

    /// Opens the connection before it is needed.
    ///
    /// # Errors
    ///
    /// Returns an error if the server takes no connection.
    pub async fn open(&mut self) -> Result<(), Unanswered> {
        Ok(self.connection.open().await?)
    }

    /// Sends `request` and returns the answer. Does not compare it with the expected one, and waits as long as it takes.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection fails, or if what comes is no answer.
    pub async fn ask(&mut self, request: &Request) -> Result<Answer, Unanswered> {
        let prepared = request::prepare(&self.target, request, true)
            .map_err(|error| Unanswered::Failed(error.to_string()))?;
        let status = self.connection.exchange(&prepared, None).await?;
        Ok(Answer {
            status,
            headers: self.connection.headers().cloned().unwrap_or_default(),
            body: self.connection.body().to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn a_server_that_never_answers_is_told_from_one_that_refuses() {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = silent.local_addr().unwrap();
        let soon = Duration::from_millis(50);
        assert_eq!(get(address, "/", soon), Err(Unanswered::TimeOut));
        // A port that is taken, and at which nobody listens.
        let taken = tokio::net::TcpSocket::new_v4().unwrap();
        taken.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let refused = get(taken.local_addr().unwrap(), "/", HOUR).unwrap_err();
        assert!(matches!(refused, Unanswered::Failed(_)), "{refused}");
    }

    #[test]
    fn a_client_keeps_its_connection_and_gets_whatever_is_answered() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            for body in ["one", "two"] {
                let _ = stream.read(&mut [0; 1024]).unwrap();
                let head = "HTTP/1.1 404 Not Found\r\nretry-after: 1\r\ncontent-length: 3";
                write!(stream, "{head}\r\n\r\n{body}").unwrap();
            }
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let mut client = Client::of(address);
            for body in ["one", "two"] {
                let answer = client.ask(&Request::get("/")).await.unwrap();
                assert_eq!((answer.status, answer.body), (404, body.into()));
                assert_eq!(answer.headers["retry-after"], "1");
            }
        });
        server.join().unwrap();
    }
}
