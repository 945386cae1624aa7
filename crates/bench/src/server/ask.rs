//! Single requests, for what is asked once.

use std::io::Read;
use std::net::SocketAddr;
use std::time::Duration;

use ureq::http::{Request, StatusCode};

use measurement::load::{Exchange, content_type};

/// A client of one server, with a connection that it keeps.
#[derive(Debug)]
pub(crate) struct Client {
    agent: ureq::Agent,
    address: SocketAddr,
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
        }
    }

    /// Status and body of the answer, or in a phrase why there is none.
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<&str>,
    ) -> Result<(StatusCode, Vec<u8>), String> {
        let refused = |error: ureq::http::Error| error.to_string();
        let uri = format!("http://{}{path}", self.address);
        let request = Request::builder().method(method).uri(uri);
        let sent = match body {
            Some(body) => {
                let request = request.header("content-type", content_type(body));
                self.agent.run(request.body(body).map_err(refused)?)
            }
            None => self.agent.run(request.body(()).map_err(refused)?),
        };
        let mut response = sent.map_err(|error| error.to_string())?;
        let mut body = Vec::new();
        let mut reader = response.body_mut().as_reader();
        reader
            .read_to_end(&mut body)
            .map_err(|error| error.to_string())?;
        Ok((response.status(), body))
    }
}

/// The body that `GET path` yields at `address`, or why there is none.
///
/// # Errors
///
/// One phrase: what the connection or the server said.
pub fn get(address: SocketAddr, path: &str, time_out: Duration) -> Result<Vec<u8>, String> {
    send(address, &Exchange::get(path, ""), time_out)
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
    let client = Client::of(address, time_out);
    let body = exchange.body.as_deref();
    let (status, body) = client.send(&exchange.method, &exchange.path, body)?;
    if status.is_success() {
        Ok(body)
    } else {
        let said = String::from_utf8_lossy(&body);
        Err(format!("{status}: {}", said.trim()))
    }
}
