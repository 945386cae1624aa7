//! What a promise sends, and what comes back.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Barrier;
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use measurement::contract::{Promise, Request};
use measurement::load::content_type;

use crate::server::Client;

/// How long one answer may take, unless its promise says so: twice the longest time-out that a
/// chapter's service has.
pub(super) const TIME_OUT: Duration = Duration::from_secs(10);
/// How long all answers on one connection may take.
const TIME_OUT_OF_ALL: Duration = Duration::from_secs(60);
/// Bytes that the answers on one connection may have.
const LARGEST: usize = 16 << 20;

/// An answer as far as it is compared: words that go with a refusal are everybody's own.
#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    Success(String),
    /// The status.
    Refusal(String),
    /// Why there was none.
    Missing(String),
}

/// Each request with what came back.
pub(super) fn asked(promise: &Promise, address: SocketAddr) -> Vec<(Request, Answer)> {
    let time_out = promise.time_out_s.map_or(TIME_OUT, Duration::from_secs);
    let numbered = |number| promise.requests.iter().map(move |one| one.numbered(number));
    let mut answers = match promise.hang_up_after_ms {
        Some(after) => {
            let later_by = promise.later_by_ms.unwrap_or_default();
            for time in 0..u64::from(promise.times) {
                let after = Duration::from_millis(after + time * later_by);
                hang_up(promise, address, after);
            }
            Vec::new()
        }
        None if promise.times == 1 => side_by_side(promise.users, |user| {
            let later = u64::from(user) * promise.apart_ms.unwrap_or_default();
            std::thread::sleep(Duration::from_millis(later));
            let client = Client::of(address, time_out);
            let requests = numbered(user).enumerate();
            let paused = requests.map(|(place, one)| {
                if let Some(pause) = promise.pause_ms.filter(|_| place > 0) {
                    std::thread::sleep(Duration::from_millis(pause));
                }
                answered(&client, one, place)
            });
            paused.collect()
        }),
        None => side_by_side(promise.users, |user| {
            let own = user * promise.times..(user + 1) * promise.times;
            let is_alone = promise.users == 1;
            pipelined(address, own.flat_map(numbered).collect(), is_alone)
        }),
    };
    let client = Client::of(address, time_out);
    let then = promise.then.iter();
    answers.extend(then.map(|request| answered(&client, request.clone(), 0)));
    answers
}

/// All users at once, each on a connection of its own; what they brought back, by number.
fn side_by_side<T: Send>(users: u32, one_user: impl Fn(u32) -> Vec<T> + Sync) -> Vec<T> {
    let together = Barrier::new(users as usize);
    std::thread::scope(|scope| {
        let user = |user: u32| {
            let (together, one_user) = (&together, &one_user);
            scope.spawn(move || {
                together.wait();
                one_user(user)
            })
        };
        let users: Vec<_> = (0..users).map(user).collect();
        users.into_iter().flat_map(joined).collect()
    })
}

/// What a thread yields; a panic of it is one of this code, and goes on.
pub(super) fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    let ended = thread.join();
    ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Sends all requests on one connection, and then reads the answers; without `bodies` their statuses.
fn pipelined(address: SocketAddr, requests: Vec<Request>, bodies: bool) -> Vec<(Request, Answer)> {
    let last = requests.len().saturating_sub(1);
    let exchanged = || -> std::io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(TIME_OUT))?;
        let wire = requests.iter().enumerate();
        let wire = wire.flat_map(|(place, one)| on_the_wire(one, address, place, place == last));
        stream.write_all(&wire.collect::<Vec<u8>>())?;
        let began = Instant::now();
        let mut answers = Vec::new();
        let mut piece = [0; 8192];
        // A server that sends something before every time-out would go on for ever.
        while began.elapsed() < TIME_OUT_OF_ALL && answers.len() <= LARGEST {
            match stream.read(&mut piece)? {
                0 => return Ok(answers),
                count => answers.extend_from_slice(&piece[..count]),
            }
        }
        let what = if answers.len() > LARGEST {
            format!("answered more than {} MiB", LARGEST >> 20)
        } else {
            format!("answered for over {} s", TIME_OUT_OF_ALL.as_secs())
        };
        Err(std::io::Error::other(what))
    };
    let exchanged = exchanged();
    let answers = exchanged.as_deref().unwrap_or_default();
    let answers = String::from_utf8_lossy(answers);
    let mut answers = answers.split("HTTP/1.1 ").skip(1);
    let missing = match &exchanged {
        Ok(_) => "the connection was closed".to_owned(),
        Err(error) => error.to_string(),
    };
    let answer = |answer: &str| match answer.get(..3) {
        Some(code) if code.starts_with('2') => {
            let body = answer.split_once("\r\n\r\n").filter(|_| bodies);
            Answer::Success(body.map_or_else(String::new, |(_, body)| body.to_owned()))
        }
        code => Answer::Refusal(code.unwrap_or_default().to_owned()),
    };
    let mut next = || {
        let answer = answers.next().map(answer);
        answer.unwrap_or_else(|| Answer::Missing(missing.clone()))
    };
    requests.into_iter().map(|one| (one, next())).collect()
}

/// Every user sends its requests, each on a connection of its own, and closes them.
fn hang_up(promise: &Promise, address: SocketAddr, after: Duration) {
    let send = |request: Request| {
        let mut stream = TcpStream::connect(address).ok()?;
        let request = on_the_wire(&request, address, 0, false);
        stream.write_all(&request).ok()?;
        Some(stream)
    };
    // A server that takes no connection is noticed by what is asked next.
    let open: Vec<TcpStream> = (0..promise.users)
        .flat_map(|user| promise.requests.iter().map(move |one| one.numbered(user)))
        .filter_map(send)
        .collect();
    std::thread::sleep(after);
    drop(open);
}

/// The user agent of a request: each on a connection has another one, as where a proxy sends them.
fn visitor(place: usize) -> String {
    format!("visitor-{place}")
}

/// A request as it is sent.
fn on_the_wire(request: &Request, host: SocketAddr, place: usize, is_last: bool) -> Vec<u8> {
    let body = request.bytes();
    let close = if is_last { "connection: close\r\n" } else { "" };
    let head = format!(
        "{} {} HTTP/1.1\r\nhost: {host}\r\nuser-agent: {}\r\n{close}content-type: {}\r\ncontent-length: {}\r\n\r\n",
        request.method,
        request.path,
        visitor(place),
        content_type(&body),
        body.len()
    );
    [head.into_bytes(), body].concat()
}

pub(super) fn answered(client: &Client, request: Request, place: usize) -> (Request, Answer) {
    let body = request.body.as_ref().map(|_| request.bytes());
    let (method, path) = (&request.method, &request.path);
    let sent = client.send(method, path, body.as_deref(), &visitor(place));
    let answer = match sent {
        Ok((status, body)) if status.is_success() => {
            Answer::Success(String::from_utf8_lossy(&body).into_owned())
        }
        Ok((status, _)) => Answer::Refusal(status.to_string()),
        Err(why) => Answer::Missing(why),
    };
    (request, answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answers to one user are those of its requests, in their order.
    #[test]
    fn answers_on_one_connection_are_told_apart() {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept()?;
            let ok = |body: &str| format!("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n{body}");
            let refused = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n";
            stream.write_all((ok("a") + refused + &ok("b")).as_bytes())?;
            // All requests, the last of which closes.
            let mut buffer = [0; 4096];
            stream.read(&mut buffer)
        });
        let request = Request::try_from("GET /".to_owned()).expect("a request");
        let answers = pipelined(address, vec![request; 4], true);
        server.join().expect("no panic").expect("it could answer");
        let answers: Vec<Answer> = answers.into_iter().map(|(_, answer)| answer).collect();
        let success = |body: &str| Answer::Success(body.to_owned());
        assert_eq!(answers[0], success("a"));
        assert_eq!(answers[1], Answer::Refusal("404".to_owned()));
        assert_eq!(answers[2], success("b"));
        assert!(matches!(answers[3], Answer::Missing(_)));
    }
}
