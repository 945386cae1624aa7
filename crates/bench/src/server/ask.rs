//! Single requests, for what is asked once.

use std::io::Read;
use std::net::SocketAddr;
use std::time::Duration;

use ureq::http::Request;

use measurement::load::Exchange;

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
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(time_out))
        .http_status_as_error(false)
        // A reader's proxy knows nothing of this machine's servers.
        .proxy(None)
        .build()
        .into();
    let request = Request::builder()
        .method(exchange.method.as_str())
        .uri(format!("http://{address}{}", exchange.path));
    let refused = |error: ureq::http::Error| error.to_string();
    let sent = match (&exchange.body, exchange.content_type()) {
        (Some(body), Some(kind)) => {
            let request = request.header("content-type", kind).body(body.as_str());
            agent.run(request.map_err(refused)?)
        }
        _ => agent.run(request.body(()).map_err(refused)?),
    };
    let mut response = sent.map_err(|error| error.to_string())?;
    let status = response.status();
    let mut body = Vec::new();
    response
        .body_mut()
        .as_reader()
        .read_to_end(&mut body)
        .map_err(|error| error.to_string())?;
    if status.is_success() {
        Ok(body)
    } else {
        let said = String::from_utf8_lossy(&body);
        Err(format!("{status}: {}", said.trim()))
    }
}
