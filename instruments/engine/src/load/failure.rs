//! Causes of failed requests, as a report counts them.

use std::error::Error as _;
use std::fmt;
use std::io;

/// The cause of one failed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Failure {
    /// The connection could not be opened.
    Connect(io::ErrorKind),
    /// The connection could not be opened, because this process may open no more files.
    Descriptors,
    /// The TLS handshake failed.
    #[cfg_attr(not(feature = "tls"), expect(dead_code))]
    Tls(&'static str),
    /// No whole answer in time.
    TimeOut,
    /// The server closed the connection before the head of an answer was complete.
    Closed,
    /// The server closed the connection before it had read the request.
    Unread,
    /// The server closed the connection within the body of an answer.
    ClosedWithin,
    /// Another error of the connection.
    Broken(io::ErrorKind),
    /// The bytes that came are no answer.
    Invalid(&'static str),
    /// The answer has more bytes than this.
    TooLarge(usize),
    /// A whole answer with another status than the expected ones.
    Status(u16),
    /// HTTP/2 was asked for, and is not spoken.
    NotHttp2(&'static str),
    /// The server ended the connection by GOAWAY, for this reason.
    #[cfg_attr(not(feature = "http2"), expect(dead_code))]
    GoAway(u32),
    /// The server ended the request alone by `RST_STREAM`, for this reason.
    #[cfg_attr(not(feature = "http2"), expect(dead_code))]
    Reset(u32),
    /// A whole answer whose gRPC status is another than 0.
    Grpc(u16),
}

/// Converts an error while reading or writing. A reset means that the server closed its side while a request was on its
/// way: the same fault as a close, seen a moment later.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe => Self::Closed,
            kind => Self::Broken(kind),
        }
    }
}

impl Failure {
    /// Returns the failure for an error while connecting.
    pub(super) fn of_connect(error: &io::Error) -> Self {
        if is_out_of_descriptors(error) {
            Self::Descriptors
        } else {
            Self::Connect(error.kind())
        }
    }

    /// Returns the failure for an error before an answer's head was complete.
    pub(super) fn of_answer(error: &hyper::Error) -> Self {
        match Self::io_error(error).map(io::Error::kind) {
            Some(io::ErrorKind::UnexpectedEof) => Self::Closed,
            // The system answers by a reset if data arrives for a closed connection.
            Some(
                io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::BrokenPipe,
            ) => Self::Unread,
            Some(kind) => Self::from(io::Error::from(kind)),
            None if error.is_parse_too_large() => {
                Self::Invalid("answer with a head of over 64 KiB or 100 headers")
            }
            None if error.is_parse() => Self::Invalid("answer is not HTTP/1.1"),
            None => Self::Closed,
        }
    }

    /// Returns the failure for an error within an answer's body.
    pub(super) fn of_body(error: &hyper::Error) -> Self {
        match Self::io_error(error).map(io::Error::kind) {
            Some(io::ErrorKind::UnexpectedEof) | None => Self::ClosedWithin,
            Some(io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) => {
                Self::Invalid("broken chunk in an answer")
            }
            Some(kind) => Self::from(io::Error::from(kind)),
        }
    }

    /// Returns the system's error that `error` stands for.
    pub(super) fn io_error(error: &hyper::Error) -> Option<&io::Error> {
        error.source()?.downcast_ref()
    }
}

#[cfg(unix)]
fn is_out_of_descriptors(error: &io::Error) -> bool {
    use rustix::io::Errno;

    matches!(
        Errno::from_io_error(error),
        Some(Errno::MFILE | Errno::NFILE)
    )
}

#[cfg(not(unix))]
fn is_out_of_descriptors(_: &io::Error) -> bool {
    false
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect(kind) => write!(f, "connect: {kind}"),
            Self::Tls(what) => write!(f, "TLS: {what}"),
            Self::TimeOut => f.write_str("time_out"),
            Self::Descriptors => f.write_str(
                "connect: this process may open no more file descriptors; raise the limit with `ulimit -n`, or ask for fewer users",
            ),
            Self::Closed => f.write_str("closed before an answer"),
            Self::Unread => f.write_str("closed before it read the request"),
            Self::ClosedWithin => f.write_str("closed within an answer"),
            Self::Broken(kind) => write!(f, "connection: {kind}"),
            Self::Invalid(what) => write!(f, "invalid: {what}"),
            Self::TooLarge(bytes) => write!(f, "answered more than {} MiB", bytes >> 20),
            Self::Status(status) => write!(f, "status {status}"),
            Self::NotHttp2(what) => {
                write!(f, "{what}; if HTTP/1.1 is spoken there, leave out --http2")
            }
            Self::GoAway(code) => write!(
                f,
                "connection ended by the server (GOAWAY, {})",
                reason(*code)
            ),
            Self::Reset(code) if is_refused(*code) => {
                f.write_str("refused by the server (REFUSED_STREAM)")
            }
            Self::Reset(code) => write!(f, "reset by the server (RST_STREAM, {})", reason(*code)),
            Self::Grpc(status) => write!(f, "grpc-status {status}"),
        }
    }
}

/// Returns the name of an HTTP/2 error code, as in RFC 9113.
#[cfg(feature = "http2")]
fn reason(code: u32) -> String {
    format!("{:?}", h2::Reason::from(code))
}

/// Returns whether the server has not begun with the request: `REFUSED_STREAM`.
#[cfg(feature = "http2")]
fn is_refused(code: u32) -> bool {
    h2::Reason::from(code) == h2::Reason::REFUSED_STREAM
}

/// Returns the number of an error code.
#[cfg(not(feature = "http2"))]
fn reason(code: u32) -> String {
    code.to_string()
}

#[cfg(not(feature = "http2"))]
fn is_refused(_: u32) -> bool {
    false
}
