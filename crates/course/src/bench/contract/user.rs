//! A user of a service: requests on a connection, and their answers.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::measurement::load::content_type;
use children::processes::CpuWanted;
use engine::load::ask::{self, Client};
use engine::traffic::Request;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep_until, timeout};

/// Longest time without an answer to anybody: three times the longest time-out of any chapter's service, for
/// a machine that is busy with something else. A crowd keeps waiting as long as one of its users is answered
/// now and then.
pub(super) const TIME_OUT: Duration = Duration::from_secs(15);
/// Longest time for one answer, whatever happens to the others. All tests together have five minutes.
const AT_MOST: Duration = Duration::from_secs(120);
/// Longest time for all answers on one connection.
const TIME_OUT_OF_ALL: Duration = Duration::from_secs(60);
/// Largest answer, in bytes.
const LARGEST: usize = 16 << 20;

/// Makes the request `GET path`.
pub fn get(path: &str) -> Request {
    Request::get(path)
}

/// Makes the request `POST path` with a body.
pub fn post(path: &str, body: impl Into<Vec<u8>>) -> Request {
    let body = body.into();
    Request {
        method: "POST".to_owned(),
        headers: vec![("content-type".to_owned(), content_type(&body).to_owned())],
        body: Some(body),
        ..Request::get(path)
    }
}

/// An answer, and the time that it took. It is compared as text. A success is its status and body, such as
/// `200 6`. A refusal is the status alone, such as `404`, because every service may choose its own words.
#[derive(Clone)]
pub struct Answer {
    said: String,
    /// The answer as it came; `None` if none came, or one among several on a connection.
    whole: Option<ask::Answer>,
    /// Time from sending the request until the answer had come.
    pub after: Duration,
}

/// Beginning of the text that stands for a missing answer.
const MISSING: &str = "no answer";
/// Beginning of the text that stands for an answer that did not come in time.
pub(super) const OVERDUE: &str = "no answer within";
/// End of that text if the server had all the CPU time that it wanted.
pub(super) const IDLE: &str = "from an idle server";
/// Last part of such a time, in which the server is looked at.
const LOOK: Duration = Duration::from_secs(5);

impl Answer {
    /// Returns whether nothing came back.
    pub(super) fn is_missing(&self) -> bool {
        self.said.starts_with(MISSING)
    }

    /// Returns whether the service kept the connection open and said nothing.
    pub(super) fn is_overdue(&self) -> bool {
        self.said.starts_with(OVERDUE)
    }

    /// Returns the body of a success.
    pub fn body(&self) -> Option<&str> {
        let (status, body) = self.said.split_once(' ')?;
        let is_success = status.len() == 3 && status.starts_with('2');
        Some(body).filter(|_| is_success)
    }

    /// Returns the value of a header; empty if there is none.
    pub fn header(&self, name: &str) -> &str {
        let headers = self.whole.as_ref().map(|answer| &answer.headers);
        match headers.and_then(|headers| headers.get(name)) {
            Some(value) => value.to_str().unwrap_or_default(),
            None => "",
        }
    }

    fn success_or_status(status: &str, body: &[u8]) -> String {
        if status.starts_with('2') {
            format!("{status} {}", String::from_utf8_lossy(body))
        } else {
            status.to_owned()
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.said)
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.said)
    }
}

impl<T: AsRef<str> + ?Sized> PartialEq<T> for Answer {
    fn eq(&self, other: &T) -> bool {
        self.said == other.as_ref()
    }
}

/// Moment at which a service last answered anybody.
#[derive(Debug, Clone)]
pub(super) struct LastAnswer {
    /// Number of the service's process.
    process: u32,
    at: Arc<Mutex<Option<Instant>>>,
}

impl LastAnswer {
    /// Makes that of a service in this process, which has answered nobody.
    pub(super) fn of(process: u32) -> Self {
        Self {
            process,
            at: Arc::default(),
        }
    }

    fn is_now(&self) {
        *self.at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    fn after(&self, began: Instant) -> Instant {
        let last = *self.at.lock().unwrap_or_else(PoisonError::into_inner);
        match last {
            Some(last) => last.max(began),
            None => began,
        }
    }

    /// Waits until nobody has been answered for [`TIME_OUT`] since `began`, or for [`AT_MOST`]. Returns whether the
    /// service answered nobody because it waits for something else than a CPU.
    async fn timeout(&self, began: Instant) -> bool {
        loop {
            let end = self.after(began) + TIME_OUT;
            let end = end.min(began + AT_MOST);
            sleep_until(end.checked_sub(LOOK).unwrap_or(end).into()).await;
            let before = CpuWanted::by(self.process);
            sleep_until(end.into()).await;
            if self.after(began) + TIME_OUT <= end {
                return CpuWanted::is_idle_since(before.as_ref(), self.process);
            }
            if began + AT_MOST <= end {
                return false;
            }
        }
    }
}

/// A user with a connection of their own, which is kept from request to request.
#[derive(Debug)]
pub struct User {
    address: SocketAddr,
    answered: LastAnswer,
    client: Client,
}

impl User {
    pub(super) fn of(address: SocketAddr, answered: LastAnswer) -> Self {
        Self {
            address,
            answered,
            client: Client::of(address),
        }
    }

    /// Sends `GET path` and returns the answer.
    pub async fn get(&mut self, path: &str) -> Answer {
        self.send(get(path)).await
    }

    /// Sends `POST path` with this body and returns the answer.
    pub async fn post(&mut self, path: &str, body: impl Into<Vec<u8>>) -> Answer {
        self.send(post(path, body)).await
    }

    /// Sends a request and returns the answer. A missing answer is "no answer" with the reason.
    pub async fn send(&mut self, request: Request) -> Answer {
        let began = Instant::now();
        let others = self.answered.clone();
        let answered = tokio::select! {
            answered = self.client.ask(&request) => Ok(answered),
            is_idle = others.timeout(began) => Err(is_idle),
        };
        let (said, whole) = match answered {
            Ok(Ok(answer)) => {
                others.is_now();
                let said = Answer::success_or_status(&answer.status.to_string(), &answer.body);
                (said, Some(answer))
            }
            Ok(Err(why)) => (format!("{MISSING} ({why})"), None),
            Err(is_idle) => {
                let seconds = began.elapsed().as_secs();
                let which = if is_idle { IDLE } else { "" };
                let said = format!("{OVERDUE} {seconds} s {which}");
                (said.trim_end().to_owned(), None)
            }
        };
        Answer {
            said,
            whole,
            after: began.elapsed(),
        }
    }

    /// Sends all requests on one connection without waiting, and then reads the answers. So the server has
    /// the next request before it has answered the last.
    pub async fn pipelined(self, requests: Vec<Request>) -> Vec<Answer> {
        let began = Instant::now();
        let count = requests.len();
        let read = timeout(TIME_OUT_OF_ALL, exchanged(self.address, requests)).await;
        let (answers, missing) = match read {
            Ok(Ok(answers)) => (answers, format!("{MISSING} (the connection was closed)")),
            Ok(Err(error)) => (Vec::new(), format!("{MISSING} ({error})")),
            Err(_) => (
                Vec::new(),
                format!("{OVERDUE} {} s", TIME_OUT_OF_ALL.as_secs()),
            ),
        };
        let answers = String::from_utf8_lossy(&answers);
        let mut said = Vec::new();
        for answer in answers.split("HTTP/1.1 ").skip(1) {
            let (_, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
            let status = answer.get(..3).unwrap_or_default();
            said.push(Answer::success_or_status(status, body.as_bytes()));
        }
        said.resize(count, missing);
        let after = began.elapsed();
        let answers = said.into_iter().map(|said| Answer {
            said,
            whole: None,
            after,
        });
        answers.collect()
    }

    /// Sends a request and hangs up after this time, without waiting for the answer.
    pub async fn hang_up(mut self, request: Request, after: Duration) {
        // The next request notices a server that takes no connection.
        if self.client.open().await.is_ok() {
            let _ = timeout(after, self.client.ask(&request)).await;
        }
    }
}

async fn exchanged(address: SocketAddr, requests: Vec<Request>) -> io::Result<Vec<u8>> {
    let last = requests.len().saturating_sub(1);
    let mut wire = Vec::new();
    for (place, request) in requests.iter().enumerate() {
        wire.extend(on_the_wire(request, address, place == last));
    }
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(&wire).await?;
    let mut answers = Vec::new();
    stream
        .take(LARGEST as u64)
        .read_to_end(&mut answers)
        .await?;
    Ok(answers)
}

/// Formats a request as it is sent.
fn on_the_wire(request: &Request, host: SocketAddr, is_last: bool) -> Vec<u8> {
    let body = request.body.as_deref().unwrap_or_default();
    let close = if is_last { "connection: close\r\n" } else { "" };
    let head = format!(
        "{} {} HTTP/1.1\r\nhost: {host}\r\n{close}content-type: {}\r\ncontent-length: {}\r\n\r\n",
        request.method,
        request.path,
        content_type(body),
        body.len()
    );
    [head.as_bytes(), body].concat()
}
