//! Single requests, for what is asked once.

use std::io::Read;
use std::net::SocketAddr;
use std::time::Duration;

use ureq::http::{Request, StatusCode};

use loadgen::Target;
use measurement::load::{Exchange, content_type};

/// Bytes that an answer may have: a chapter's are some KiB.
const LARGEST: u64 = 1 << 20;
/// Bytes that a profile or a list of counters may have.
const LARGEST_OF_ADMIN: u64 = 64 << 20;

/// A client of one server, with a connection that it keeps.
#[derive(Debug)]
pub(crate) struct Client {
    agent: ureq::Agent,
    address: SocketAddr,
    largest: u64,
}

impl Client {
    /// No connection is opened yet. An answer may take `time_out`.
    pub(crate) fn of(address: SocketAddr, time_out: Duration) -> Self {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(time_out))
            .http_status_as_error(false)
            // A reader's proxy knows nothing of this machine's servers.
            .proxy(None);
        Self {
            agent: config.build().into(),
            address,
            largest: LARGEST,
        }
    }

    /// Status and body of the answer, or in a phrase why there is none.
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<&[u8]>,
        agent: &str,
    ) -> Result<(StatusCode, Vec<u8>), String> {
        let refused = |error: ureq::http::Error| error.to_string();
        let uri = format!("http://{}{path}", self.address);
        let request = Request::builder().method(method).uri(uri);
        let request = request.header("user-agent", agent);
        let sent = match body {
            Some(body) => {
                let request = request.header("content-type", content_type(body));
                self.agent.run(request.body(body).map_err(refused)?)
            }
            None => self.agent.run(request.body(()).map_err(refused)?),
        };
        let mut response = sent.map_err(|error| error.to_string())?;
        let mut body = Vec::new();
        let reader = response.body_mut().as_reader();
        let read = reader.take(self.largest + 1).read_to_end(&mut body);
        let count = read.map_err(|error| error.to_string())? as u64;
        if count > self.largest {
            return Err(format!("answered more than {} MiB", self.largest >> 20));
        }
        Ok((response.status(), body))
    }

    fn body(&self, exchange: &Exchange) -> Result<Vec<u8>, String> {
        let body = exchange.body.as_deref().map(str::as_bytes);
        let (status, body) = self.send(&exchange.method, &exchange.path, body, "workshop")?;
        if status.is_success() {
            Ok(body)
        } else {
            let said = String::from_utf8_lossy(&body);
            Err(format!("{status}: {}", said.trim()))
        }
    }
}

/// The body that `GET path` yields at `address`, where profiles and counters are, or why there is
/// none.
///
/// # Errors
///
/// One phrase: what the connection or the server said.
pub fn get(address: SocketAddr, path: &str, time_out: Duration) -> Result<Vec<u8>, String> {
    let client = Client {
        largest: LARGEST_OF_ADMIN,
        ..Client::of(address, time_out)
    };
    client.body(&Exchange::get(path, ""))
}

/// As [`get`], of a server that may speak HTTPS.
///
/// # Errors
///
/// As [`get`].
pub(crate) fn fetch(target: &Target, path: &str, time_out: Duration) -> Result<Vec<u8>, String> {
    if target.tls.is_none() {
        return get(target.address, path, time_out);
    }
    let request = (&Exchange::get(path, "")).into();
    let mut answers = loadgen::ask(target.clone(), [&request], time_out)?;
    match answers.pop() {
        Some(answer) if (200..300).contains(&answer.status) => Ok(answer.body.unwrap_or_default()),
        Some(answer) => Err(format!("status {}", answer.status)),
        None => Err("nothing was asked".to_owned()),
    }
}

/// The body that the request of `exchange` yields at `address`, or why there is none. What it
/// ought to yield is not looked at.
///
/// # Errors
///
/// As [`get`].
pub fn send(
    address: SocketAddr,
    exchange: &Exchange,
    time_out: Duration,
) -> Result<Vec<u8>, String> {
    Client::of(address, time_out).body(exchange)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    /// The answer comes from a server that never stops.
    #[test]
    fn an_endless_answer_is_given_up() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
            while stream.write_all(&[b'6'; 4096]).is_ok() {}
        });
        let time_out = Duration::from_secs(60);
        let said = send(address, &Exchange::get("/", "6"), time_out);
        assert_eq!(said, Err("answered more than 1 MiB".to_owned()));
        server.join().expect("it was hung up on");
    }
}
