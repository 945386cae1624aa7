//! Single requests, for what is asked once.

use std::time::Duration;

use crate::load::Target;
use crate::traffic::Request;
use hyper::StatusCode;

/// The body that `GET path` yields at `target`, or why there is none.
///
/// # Errors
///
/// One phrase: what the connection or the server said.
pub fn get(target: impl Into<Target>, path: &str, time_out: Duration) -> Result<Vec<u8>, String> {
    send(target, &Request::get(path), time_out)
}

/// The body that `request` yields at `target`, or why there is none. What it
/// ought to yield is not looked at.
///
/// # Errors
///
/// As [`get`].
pub fn send(
    target: impl Into<Target>,
    request: &Request,
    time_out: Duration,
) -> Result<Vec<u8>, String> {
    let target = target.into();
    // A thread of its own: whoever asks may be at work in a runtime, which waits for nobody.
    let asked = std::thread::scope(|scope| {
        let asking = scope.spawn(|| crate::load::ask(target, [request], time_out));
        asking.join()
    });
    let answer = asked.map_err(|_| "the request panicked".to_owned())??.pop();
    let answer = answer.ok_or("nothing was asked")?;
    let body = answer.body.unwrap_or_default();
    match StatusCode::from_u16(answer.status) {
        Ok(status) if !status.is_success() => {
            let said = String::from_utf8_lossy(&body);
            Err(format!("{status}: {}", said.trim()))
        }
        _ => Ok(body),
    }
}
