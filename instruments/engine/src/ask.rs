//! Single requests, outside of a load.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use crate::load::Target;
use crate::load::interrupt::Interrupt;
use crate::traffic::Request;
use hyper::StatusCode;

/// Returns the body that `GET path` yields at `target`.
///
/// # Errors
///
/// Returns one phrase on why there is no body, from the connection or the server.
pub fn get(target: impl Into<Target>, path: &str, time_out: Duration) -> Result<Vec<u8>, String> {
    send(target, &Request::get(path), time_out)
}

/// Reason for a missing answer, where the wait for it can be interrupted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unanswered {
    /// Ctrl-C.
    Interrupted,
    /// One phrase from the connection or the server.
    Failed(String),
}

/// Returns the body as [`get`] does, and gives up as soon as `interrupt` is set. The request then goes on in the
/// background until the caller ends the server.
///
/// # Errors
///
/// Returns an error if it is interrupted, and the errors of [`get`].
pub fn get_unless(
    interrupt: &Interrupt,
    target: impl Into<Target>,
    path: &str,
    time_out: Duration,
) -> Result<Vec<u8>, Unanswered> {
    let (target, path) = (target.into(), path.to_owned());
    let (sender, answers) = channel();
    std::thread::spawn(move || sender.send(get(target, &path, time_out)));
    loop {
        if interrupt.is_set() {
            return Err(Unanswered::Interrupted);
        }
        match answers.recv_timeout(Duration::from_millis(50)) {
            Ok(answer) => return answer.map_err(Unanswered::Failed),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Unanswered::Failed("the request panicked".to_owned()));
            }
        }
    }
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
) -> Result<Vec<u8>, String> {
    let target = target.into();
    // A thread of its own: the caller may be within a runtime, where blocking on another one panics.
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

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn a_server_that_never_answers_is_left_at_once_by_whoever_is_interrupted() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = silent.local_addr().unwrap();
        let interrupt = Interrupt::new();
        let asked = std::thread::scope(|scope| {
            let asking = scope.spawn(|| get_unless(&interrupt, address, "/", HOUR));
            // The request is on its way.
            let _connection = silent.accept().unwrap();
            interrupt.set();
            asking.join().unwrap()
        });
        assert_eq!(asked, Err(Unanswered::Interrupted));
    }
}
