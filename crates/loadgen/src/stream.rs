//! The bytes of a connection, encrypted or not.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::failure::Failure;
use super::target::Target;

#[derive(Debug)]
pub(super) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// Connects, and shakes hands where the target speaks TLS.
    pub(super) async fn connect(target: &Target) -> Result<Self, Failure> {
        let stream = TcpStream::connect(target.address)
            .await
            .map_err(|error| Failure::Connect(error.kind()))?;
        stream.set_nodelay(true)?;
        let Some(tls) = &target.tls else {
            return Ok(Self::Plain(stream));
        };
        let connector = TlsConnector::from(tls.config.clone());
        let connected = connector.connect(tls.name.clone(), stream).await;
        let stream = connected.map_err(|error| Failure::of_handshake(&error))?;
        Ok(Self::Tls(Box::new(stream)))
    }

    pub(super) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.write_all(bytes).await,
            Self::Tls(stream) => {
                stream.write_all(bytes).await?;
                stream.flush().await
            }
        }
    }

    /// How many bytes of `room` are filled; 0 at the end.
    pub(super) async fn receive(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(room).await,
            Self::Tls(stream) => stream.read(room).await,
        }
    }

    /// A kept connection, unless the server has closed it meanwhile (which is its right) or sent something.
    /// No system call unless something has happened on it.
    pub(super) fn if_quiet(mut self) -> Option<Self> {
        let mut byte = [0];
        let is_quiet = match &mut self {
            Self::Plain(stream) => {
                matches!(stream.try_read(&mut byte), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
            }
            // Through TLS: a server may send tickets, which are for the library and no part of an answer.
            Self::Tls(stream) => {
                let mut context = Context::from_waker(Waker::noop());
                let mut room = ReadBuf::new(&mut byte);
                let read = Pin::new(stream.as_mut()).poll_read(&mut context, &mut room);
                matches!(read, Poll::Pending)
            }
        };
        is_quiet.then_some(self)
    }

    /// Ends it by a reset instead of a farewell: a polite close would hold the local port for a
    /// minute, and a connection a request soon runs out of ports.
    pub(super) fn reset(self) {
        let _ = match &self {
            Self::Plain(stream) => stream.set_zero_linger(),
            Self::Tls(stream) => stream.get_ref().0.set_zero_linger(),
        };
    }
}
