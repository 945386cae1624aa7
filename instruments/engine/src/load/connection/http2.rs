//! A connection that speaks HTTP/2, one stream at a time.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use h2::Reason;
use h2::client::{Builder, Connection, SendRequest};
use hyper::body::Bytes;
use hyper::header::{HeaderMap, HeaderName};
use hyper::{Request, Response};

use super::{LARGEST_HEAD, Received, Status};
use crate::load::failure::Failure;
use crate::load::stream::Stream;

/// Bytes that a server may send ahead, as many as a browser allows.
const WINDOW: u32 = 4 << 20;
/// Limit of streams until the server has announced its own, which is smaller.
const BEFORE_SETTINGS: usize = usize::MAX - 1;
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// HTTP/2 over a connection. The user who waits polls it, as with HTTP/1.1. Hyper would spawn a task for each request,
/// so this uses the library below hyper.
pub(super) struct Http2 {
    sender: SendRequest<Bytes>,
    /// `None` once the connection has ended.
    io: Option<Connection<Box<dyn Stream>, Bytes>>,
    /// Reason why the connection ended, if the server has given one.
    ended: Option<Failure>,
}

impl Http2 {
    pub(super) async fn over(stream: Box<dyn Stream>) -> Result<Self, Failure> {
        let handshake = Builder::new()
            .enable_push(false)
            .initial_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .max_header_list_size(LARGEST_HEAD)
            .initial_max_send_streams(BEFORE_SETTINGS)
            .handshake(stream);
        let (sender, io) = handshake.await.map_err(|error| of_head(&error))?;
        Ok(Self {
            sender,
            io: Some(io),
            ended: None,
        })
    }

    /// Sends `request`, and returns the answer's status once all of it is in `received`.
    pub(super) async fn exchange(
        &mut self,
        request: Request<Bytes>,
        received: Received<'_>,
    ) -> Result<Status, Failure> {
        let (head, body) = request.into_parts();
        let head = Request::from_parts(head, ());
        let sent = self.sender.send_request(head, body.is_empty());
        let (answer, mut upload) = sent.map_err(|error| of_head(&error))?;
        if !body.is_empty() {
            let sent = upload.send_data(body, true);
            sent.map_err(|error| of_head(&error))?;
        }
        let mut work = pin!(async {
            let answer = answer.await.map_err(|error| of_head(&error))?;
            read(answer, received).await
        });
        let done = poll_fn(|context| {
            self.drive(context);
            work.as_mut().poll(context)
        });
        let done = done.await;
        let has_begun = self.sender.current_max_send_streams() != BEFORE_SETTINGS;
        done.map_err(|failure| match (failure, self.ended) {
            (Failure::Closed | Failure::ClosedWithin, Some(reason)) => reason,
            (Failure::Closed, None) if !has_begun => {
                Failure::NotHttp2("closed before HTTP/2 began")
            }
            (Failure::Invalid(_), _) if !has_begun => Failure::NotHttp2("the answer is not HTTP/2"),
            (other, _) => other,
        })
    }

    /// Returns whether another request can be sent.
    pub(super) fn is_idle(&mut self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        self.drive(&mut context);
        self.io.is_some() && matches!(self.sender.poll_ready(&mut context), Poll::Ready(Ok(())))
    }

    /// Reads and writes what can be read and written now.
    pub(super) fn drive(&mut self, context: &mut Context<'_>) {
        if let Some(io) = &mut self.io
            && let Poll::Ready(end) = Pin::new(io).poll(context)
        {
            self.io = None;
            let reason = end.err().filter(h2::Error::is_remote);
            self.ended = reason.map(|error| of_head(&error));
        }
    }
}

async fn read(
    answer: Response<h2::RecvStream>,
    mut received: Received<'_>,
) -> Result<Status, Failure> {
    let status = answer.status().as_u16();
    let mut grpc = grpc_status(answer.headers());
    let (head, mut body) = answer.into_parts();
    received.head(head.headers);
    while let Some(bytes) = body.data().await {
        let bytes = match bytes {
            // The server has answered without having read the whole request, and wants no more of it: RFC 9113, 8.1.
            Err(error) if is_enough(&error) => break,
            bytes => bytes.map_err(|error| of_body(&error))?,
        };
        received.add(&bytes)?;
        // An error would concern a stream that has ended.
        let _ = body.flow_control().release_capacity(bytes.len());
    }
    match body.trailers().await {
        Ok(Some(trailers)) => grpc = grpc.or(grpc_status(&trailers)),
        Ok(None) => {}
        Err(error) if is_enough(&error) => {}
        Err(error) => return Err(of_body(&error)),
    }
    Ok(match grpc {
        None | Some(0) => Status::Http(status),
        Some(failed) => Status::Grpc(failed),
    })
}

fn is_enough(error: &h2::Error) -> bool {
    error.is_reset() && error.reason() == Some(Reason::NO_ERROR)
}

/// Returns the gRPC status in `headers`. If it is no number, it counts as 2, gRPC's "unknown".
fn grpc_status(headers: &HeaderMap) -> Option<u16> {
    let status = headers.get(GRPC_STATUS)?.to_str().unwrap_or_default();
    Some(status.parse().unwrap_or(2))
}

/// Returns the failure for an error before an answer's head was complete.
fn of_head(error: &h2::Error) -> Failure {
    match error.reason() {
        Some(reason) if error.is_remote() && error.is_go_away() => Failure::GoAway(reason.into()),
        Some(reason) if error.is_remote() => Failure::Reset(reason.into()),
        Some(_) => Failure::Invalid("answer is against the rules of HTTP/2"),
        None => match error.get_io() {
            Some(error) => Failure::from(std::io::Error::from(error.kind())),
            None => Failure::Invalid("HTTP/2 does not allow this request"),
        },
    }
}

/// Returns the failure for an error within an answer's body.
fn of_body(error: &h2::Error) -> Failure {
    match of_head(error) {
        Failure::Closed => Failure::ClosedWithin,
        other => other,
    }
}
