//! A connection that speaks HTTP/1.1.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::{Body, Bytes};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;

use super::{LARGEST_HEAD, Received, Status};
use crate::load::failure::Failure;
use crate::load::stream::Stream;

type Io = http1::Connection<TokioIo<Box<dyn Stream>>, Full<Bytes>>;

/// HTTP/1.1 over a connection. The user who waits polls hyper's end of it, and no task of its own: that saves one
/// wake-up per answer.
pub(super) struct Http1 {
    sender: SendRequest<Full<Bytes>>,
    /// `None` once the connection has ended.
    io: Option<Io>,
    /// Error that ended the connection, if the end was no ordinary one.
    error: Option<hyper::Error>,
    /// Set if the server closed the connection before it read the last request.
    is_unread: bool,
}

impl Http1 {
    pub(super) async fn over(stream: Box<dyn Stream>) -> Result<Self, Failure> {
        let (sender, io) = http1::Builder::new()
            .max_buf_size(LARGEST_HEAD as usize)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| Failure::of_answer(&error))?;
        Ok(Self {
            sender,
            io: Some(io),
            error: None,
            is_unread: false,
        })
    }

    /// Sends `request`, and returns the answer's status once all of it is in `received`.
    pub(super) async fn exchange(
        &mut self,
        request: Request<Bytes>,
        mut received: Received<'_>,
    ) -> Result<Status, Failure> {
        let answer = self.sender.send_request(request.map(Full::new));
        let mut work = pin!(async {
            let answer = answer.await.map_err(|error| Failure::of_answer(&error))?;
            let status = answer.status().as_u16();
            let (head, mut body) = answer.into_parts();
            received.head(head.headers);
            if body.size_hint().lower() > received.largest as u64 {
                return Err(Failure::TooLarge(received.largest));
            }
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(|error| Failure::of_body(&error))?;
                if let Ok(bytes) = frame.into_data() {
                    received.add(&bytes)?;
                }
            }
            Ok(Status::Http(status))
        });
        let done = poll_fn(|context| {
            self.drive(context);
            work.as_mut().poll(context)
        });
        match done.await {
            Err(Failure::Closed) if self.is_unread => Err(Failure::Unread),
            done => done,
        }
    }

    /// Returns whether another request can be sent. A server may close an idle connection, which is no fault. Makes no
    /// system call unless something has happened on the connection.
    pub(super) fn is_idle(&mut self) -> Result<bool, Failure> {
        self.drive(&mut Context::from_waker(Waker::noop()));
        match self.error.take() {
            Some(error) if Failure::io_error(&error).is_none() => {
                Err(Failure::Invalid("bytes after the answer's end"))
            }
            error => Ok(error.is_none() && self.io.is_some() && self.sender.is_ready()),
        }
    }

    /// Reads and writes what can be read and written now. Never shuts the connection down by itself: that would hold
    /// the port of a connection that is to end by a reset.
    fn drive(&mut self, context: &mut Context<'_>) {
        if let Some(io) = &mut self.io
            && let Poll::Ready(end) = io.poll_without_shutdown(context)
        {
            // A reset may come after the end, where nobody reads it any more. A server that has read the request sends
            // none.
            let stream = self.io.take().map(|io| io.into_parts().io.into_inner());
            let error = stream.and_then(|stream| stream.tcp().take_error().ok()?);
            self.is_unread = error.is_some();
            self.error = end.err();
        }
    }
}
