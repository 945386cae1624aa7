//! A user's connection: opened when needed, kept if the load keeps it, one request at a time.

mod http1;
#[cfg_attr(not(feature = "http2"), path = "connection/no_http2.rs")]
mod http2;

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::time::{Duration, Instant};

use hyper::HeaderMap;
use hyper::Request;
use hyper::body::Bytes;
use tokio::net::TcpStream;

use self::http1::Http1;
use self::http2::Http2;
use super::failure::Failure;
use super::pieces::Arrived;
use super::stream::Stream;
use super::target::{Protocol, Target};

/// Largest body that is accepted in bytes, however few users there are.
pub(super) const LARGEST: usize = 64 << 20;
/// Largest body that is accepted where all users' together would not fit into memory. A chapter's answers are a few
/// KiB, so a larger one means a runaway server.
const LARGEST_OF_MANY: usize = 1 << 20;
/// Memory for the answers of all users together, in bytes.
const LARGEST_OF_ALL: usize = 1 << 30;
const LARGEST_HEAD: u32 = 64 << 10;
/// Idle time after which a server may close a connection while the next request is on its way, which is nobody's fault.
/// Over a network, nothing else distinguishes that close from one in place of an answer.
const LONG_IDLE: Duration = Duration::from_secs(1);

/// Returns the largest body that is accepted in bytes, if all `users` may receive one at once.
pub(super) fn largest(users: u32) -> usize {
    let share = LARGEST_OF_ALL / usize::try_from(users.max(1)).unwrap_or(usize::MAX);
    share.clamp(LARGEST_OF_MANY, LARGEST)
}

pub(super) struct Connection {
    target: Target,
    keep_alive: bool,
    /// Largest body in bytes.
    largest: usize,
    /// Open connection, and the moment since which it is idle. `None` while a request is on its way, too: if it fails
    /// or times out, its connection is dropped with it. So a late answer cannot be taken for the next one's.
    idle: Option<(Http, Instant)>,
    /// Body of the last answer.
    body: Vec<u8>,
    /// Headers of the last answer, if somebody wants them: keeping them holds hyper's buffer.
    headers: Option<HeaderMap>,
}

impl Connection {
    /// Creates a connection that is not open yet. A body may have `largest` bytes.
    pub(super) fn new(target: Target, keep_alive: bool, largest: usize) -> Self {
        Self {
            target,
            keep_alive,
            largest,
            idle: None,
            body: Vec::new(),
            headers: None,
        }
    }

    /// Keeps the headers of answers, for [`Self::headers`].
    pub(super) fn with_headers(mut self) -> Self {
        self.headers = Some(HeaderMap::new());
        self
    }

    /// Opens the connection before it is needed.
    pub(super) async fn open(&mut self) -> Result<(), Failure> {
        let http = Http::connect(&self.target, self.keep_alive).await?;
        self.idle = Some((http, Instant::now()));
        Ok(())
    }

    /// Sends `request` and reads the whole answer, over a new connection if the server has left none open. Returns the
    /// status; the body is [`Self::body`].
    ///
    /// Sends an idempotent request again, once, if the server closed an idle connection before it read the request (RFC
    /// 9112, 9.3.1). A close without an answer counts as such if the connection was idle for long. It also sends a
    /// request again that an HTTP/2 server says it has not looked at, on taking its leave (RFC 9113, 6.8). A server
    /// that reads a request and then closes has failed, as one whose handler panics.
    ///
    /// Notes in `arrived`, if that is wanted, when the pieces of the answer arrive.
    pub(super) async fn exchange(
        &mut self,
        request: &Request<Bytes>,
        arrived: Option<&mut Arrived>,
    ) -> Result<u16, Failure> {
        match self.exchange_once_or_twice(request, arrived).await {
            Err(Failure::Unread) => Err(Failure::Closed),
            done => done,
        }
    }

    async fn exchange_once_or_twice(
        &mut self,
        request: &Request<Bytes>,
        mut arrived: Option<&mut Arrived>,
    ) -> Result<u16, Failure> {
        if let Some((mut http, since)) = self.idle.take()
            && let Ok(true) = http.is_idle()
        {
            let is_repeatable = request.method().is_idempotent();
            let was_long_idle = since.elapsed() >= LONG_IDLE;
            let arrived = arrived.as_deref_mut();
            match self.exchange_over(http, request, arrived).await {
                Err(Failure::Unread) if is_repeatable => {}
                Err(Failure::Closed) if is_repeatable && was_long_idle => {}
                Err(Failure::GoAway(0)) => {}
                done => return done,
            }
        }
        let http = Http::connect(&self.target, self.keep_alive).await?;
        self.exchange_over(http, request, arrived).await
    }

    async fn exchange_over(
        &mut self,
        mut http: Http,
        request: &Request<Bytes>,
        arrived: Option<&mut Arrived>,
    ) -> Result<u16, Failure> {
        self.body.clear();
        let received = Received {
            body: &mut self.body,
            headers: self.headers.as_mut(),
            arrived,
            largest: self.largest,
        };
        let status = http.exchange(request.clone(), received).await?;
        if self.keep_alive && http.is_idle()? {
            self.idle = Some((http, Instant::now()));
        }
        match status {
            Status::Http(status) => Ok(status),
            Status::Grpc(status) => Err(Failure::Grpc(status)),
        }
    }

    /// Waits for `what`, and answers the pings by which an HTTP/2 server checks that the client is still there.
    pub(super) async fn rest<T>(&mut self, what: impl Future<Output = T>) -> T {
        let mut what = pin!(what);
        poll_fn(|context| {
            if let Some((Http::Two(http), _)) = &mut self.idle {
                http.drive(context);
            }
            what.as_mut().poll(context)
        })
        .await
    }

    /// Returns the body of the last answer.
    pub(super) fn body(&self) -> &[u8] {
        &self.body
    }

    /// Returns the headers of the last answer, if they are kept.
    pub(super) fn headers(&self) -> Option<&HeaderMap> {
        self.headers.as_ref()
    }
}

/// Destination of an answer.
struct Received<'a> {
    body: &'a mut Vec<u8>,
    /// `None` if nobody wants them: keeping them holds the buffer that they were read into.
    headers: Option<&'a mut HeaderMap>,
    /// `None` unless the times of pieces are wanted.
    arrived: Option<&'a mut Arrived>,
    /// Largest body in bytes.
    largest: usize,
}

impl Received<'_> {
    fn head(&mut self, headers: HeaderMap) {
        if let Some(arrived) = &mut self.arrived {
            arrived.head(&headers);
        }
        if let Some(kept) = &mut self.headers {
            **kept = headers;
        }
    }

    fn add(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if self.body.len() + bytes.len() > self.largest {
            return Err(Failure::TooLarge(self.largest));
        }
        if let Some(arrived) = &mut self.arrived {
            arrived.bytes(bytes, Instant::now());
        }
        self.body.extend_from_slice(bytes);
        Ok(())
    }
}

/// Status of a whole answer.
enum Status {
    Http(u16),
    /// Status of a failed gRPC call, never 0. HTTP may report success nevertheless.
    #[cfg_attr(not(feature = "http2"), expect(dead_code))]
    Grpc(u16),
}

/// An open connection.
enum Http {
    One(Box<Http1>),
    Two(Box<Http2>),
}

impl Http {
    /// Connects, and does the handshake if the target speaks TLS.
    async fn connect(target: &Target, keep_alive: bool) -> Result<Self, Failure> {
        let Protocol { tls, http2 } = &target.protocol;
        let stream = TcpStream::connect(target.address)
            .await
            .map_err(|error| Failure::of_connect(&error))?;
        stream.set_nodelay(true)?;
        if !keep_alive {
            // A reset ends it instead of a farewell. A polite close would hold the local port for a minute, and a
            // connection per request soon runs out of ports.
            stream.set_zero_linger()?;
        }
        let stream: Box<dyn Stream> = match tls {
            None => Box::new(stream),
            Some(tls) => tls.over(*http2, stream).await?,
        };
        Ok(if *http2 {
            Self::Two(Box::new(Http2::over(stream).await?))
        } else {
            Self::One(Box::new(Http1::over(stream).await?))
        })
    }

    /// Sends `request`, and returns the answer's status once all of it is in `received`.
    async fn exchange(
        &mut self,
        request: Request<Bytes>,
        received: Received<'_>,
    ) -> Result<Status, Failure> {
        match self {
            Self::One(http) => http.exchange(request, received).await,
            Self::Two(http) => http.exchange(request, received).await,
        }
    }

    /// Returns whether another request can be sent. A server may close an idle connection, which is no fault. Makes no
    /// system call unless something has happened on the connection.
    fn is_idle(&mut self) -> Result<bool, Failure> {
        match self {
            Self::One(http) => http.is_idle(),
            Self::Two(http) => Ok(http.is_idle()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    /// Reads the first answer of a server that sends `bytes` and closes.
    fn read(bytes: String) -> Result<(u16, String), String> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let target = Target::from(listener.local_addr().expect("bound"));
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let _ = stream.read(&mut [0; 1024]);
            // The client may have closed the connection already.
            let _ = stream.write_all(bytes.as_bytes());
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let read = runtime.block_on(async {
            let mut connection = Connection::new(target, true, LARGEST_OF_MANY);
            let request = Request::new(Bytes::new());
            let status = connection.exchange(&request, None).await;
            let body = String::from_utf8_lossy(connection.body()).into_owned();
            status.map(|status| (status, body))
        });
        server.join().expect("it does not panic");
        read.map_err(|failure| failure.to_string())
    }

    const OK: &str = "HTTP/1.1 200 OK\r\n";
    const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

    #[test]
    fn answers_of_every_form_are_read() {
        let interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n";
        for (bytes, status, body) in [
            (format!("{OK}content-length: 1\r\n\r\n6"), 200, "6"),
            (
                format!("{CHUNKED}1\r\n6\r\n2;x=y\r\n78\r\n0\r\nsum: 3\r\n\r\n"),
                200,
                "678",
            ),
            (format!("{OK}\r\nto the end"), 200, "to the end"),
            (format!("{interim}{OK}content-length: 1\r\n\r\n6"), 200, "6"),
            ("HTTP/1.1 204 No Content\r\n\r\n".to_owned(), 204, ""),
            (
                "HTTP/1.1 304\r\ncontent-length: 7\r\n\r\n".to_owned(),
                304,
                "",
            ),
        ] {
            assert_eq!(read(bytes), Ok((status, body.to_owned())));
        }
    }

    #[test]
    fn what_is_no_answer_or_too_large_is_refused_in_a_phrase() {
        let too_large = "answered more than 1 MiB";
        let large_head = "invalid: answer with a head of over 64 KiB or 100 headers";
        let long = "x".repeat(LARGEST_OF_MANY + 1);
        for (bytes, expected) in [
            (
                "SSH-2.0-OpenSSH_9.2\r\n".to_owned(),
                "invalid: answer is not HTTP/1.1",
            ),
            (
                format!("{OK}content-length: six\r\n\r\n"),
                "invalid: answer is not HTTP/1.1",
            ),
            (
                format!("{OK}content-length: 1\r\n\r\n66"),
                "invalid: bytes after the answer's end",
            ),
            (format!("{OK}{}\r\n", "x: y\r\n".repeat(101)), large_head),
            (format!("{OK}x: {long}\r\n\r\n"), large_head),
            (
                format!("{CHUNKED}z\r\n"),
                "invalid: broken chunk in an answer",
            ),
            (
                format!("{CHUNKED}1\r\n666\r\n"),
                "invalid: broken chunk in an answer",
            ),
            (format!("{CHUNKED}5\r\nhel"), "closed within an answer"),
            (String::new(), "closed before an answer"),
            (format!("{OK}content-le"), "closed before an answer"),
            (
                format!("{OK}content-length: 99999999999\r\n\r\n"),
                too_large,
            ),
            (format!("{OK}\r\n{long}"), too_large),
            (
                format!("{CHUNKED}{:x}\r\n{long}\r\n0\r\n\r\n", long.len()),
                too_large,
            ),
        ] {
            let shown = bytes[..bytes.len().min(80)].to_owned();
            assert_eq!(read(bytes), Err(expected.to_owned()), "{shown}");
        }
    }

    #[test]
    fn many_users_have_less_room_each() {
        assert_eq!(
            [1, 16, 64, 1024, 100_000].map(largest),
            [64, 64, 16, 1, 1].map(|mib| mib << 20)
        );
    }
}
