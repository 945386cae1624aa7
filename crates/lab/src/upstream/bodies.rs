//! Bodies of any length, sent in chunks without a `Content-Length`. One byte is higher than all others.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame};

/// The length of a chunk.
const CHUNK: usize = 64 * 1024;
/// All bytes but one are below this.
const ORDINARY: u8 = 128;

/// A body as it is sent, a chunk at a time.
#[derive(Debug)]
pub(super) struct Chunks {
    ordinary: Bytes,
    highest: u8,
    /// Position of the highest byte.
    highest_at: u64,
    sent: u64,
    length: u64,
    /// Fault that replaces the second chunk.
    fault: Option<Fault>,
}

/// A fault of a body after its first chunk.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fault {
    /// The body stops without an end.
    Stalls,
    /// The connection closes after the first chunk has been sent.
    BreaksOff,
    /// The first chunk has been sent: the connection closes at once.
    HasBrokenOff,
}

/// Makes bodies that depend on the data seed, and on their number: the highest byte of each is at
/// another position, so that only a reader of all bytes finds it.
#[derive(Debug, Clone)]
pub(super) struct Maker {
    ordinary: Bytes,
    seed: u64,
}

impl Maker {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            ordinary: (0..ORDINARY).cycle().take(CHUNK).collect(),
            seed,
        }
    }

    /// The `number`-th body, of about `length` bytes: of exactly so many without a data seed.
    pub(super) fn make(&self, number: u64, length: u64) -> Chunks {
        let length = (length + self.seed % 997).max(1);
        Chunks {
            ordinary: self.ordinary.clone(),
            highest: 255 - u8::try_from(self.seed % u64::from(ORDINARY)).unwrap_or_default(),
            highest_at: highest_at(number, length),
            sent: 0,
            length,
            fault: None,
        }
    }

    /// A body that begins and does not end as it should.
    pub(super) fn fail(&self, fault: Fault) -> Chunks {
        Chunks {
            fault: Some(fault),
            ..self.make(0, u64::MAX >> 1)
        }
    }
}

/// Returns the position of the highest byte in the upstream's `number`-th body, for a body of `length` bytes.
/// The first body has the number 1. Tests compare a service's answer with it.
pub fn highest_at(number: u64, length: u64) -> u64 {
    // Fibonacci hashing: evenly spread, and the same in every run.
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % length
}

impl Chunks {
    /// Returns the length of the whole body in bytes.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    fn next(&mut self) -> Option<Bytes> {
        let left = usize::try_from(self.length - self.sent).unwrap_or(CHUNK);
        let chunk = self.ordinary.slice(..left.min(CHUNK));
        // Position of the highest byte within this chunk, if it is in it.
        let at = self.highest_at.checked_sub(self.sent);
        let at = at.and_then(|at| usize::try_from(at).ok());
        self.sent += chunk.len() as u64;
        match at {
            _ if chunk.is_empty() => None,
            Some(at) if at < chunk.len() => {
                let mut bytes = chunk.to_vec();
                bytes[at] = self.highest;
                Some(bytes.into())
            }
            _ => Some(chunk),
        }
    }
}

impl Body for Chunks {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match self.fault.filter(|_| self.sent > 0) {
            None => {}
            Some(Fault::Stalls) => return Poll::Pending,
            Some(Fault::BreaksOff) => {
                self.fault = Some(Fault::HasBrokenOff);
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            Some(Fault::HasBrokenOff) => {
                return Poll::Ready(Some(Err(io::ErrorKind::ConnectionReset.into())));
            }
        }
        Poll::Ready(self.next().map(|chunk| Ok(Frame::data(chunk))))
    }
}
