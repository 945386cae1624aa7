//! A user's connection: opened when needed, kept if the load keeps it, one request at a time.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::answer::{Answer, Decoder};
use super::failure::Failure;

#[derive(Debug)]
pub(super) struct Connection {
    target: SocketAddr,
    keep_alive: bool,
    /// `None` while a request is on its way, too: if it fails or times out, its connection is
    /// dropped with it, and a late answer cannot be taken for the next one's.
    idle: Option<TcpStream>,
    decoder: Decoder,
}

impl Connection {
    /// None is opened yet. An answer may have `largest` bytes.
    pub(super) fn new(target: SocketAddr, keep_alive: bool, largest: usize) -> Self {
        Self {
            target,
            keep_alive,
            idle: None,
            decoder: Decoder::new(largest),
        }
    }

    /// Opens the connection before it is needed.
    pub(super) async fn open(&mut self) -> Result<(), Failure> {
        self.idle = Some(connect(self.target).await?);
        Ok(())
    }

    /// Sends `request` and reads the whole answer, over a new connection if there is none.
    pub(super) async fn exchange(&mut self, request: &[u8]) -> Result<Answer, Failure> {
        let mut stream = match self.idle.take() {
            Some(stream) if is_quiet(&stream) => stream,
            _ => connect(self.target).await?,
        };
        self.decoder.reset();
        stream.write_all(request).await?;
        let answer = loop {
            let count = stream.read(self.decoder.room()).await?;
            if count == 0 {
                break self.decoder.close()?;
            }
            if let Some(answer) = self.decoder.advance(count)? {
                break answer;
            }
        };
        if self.keep_alive {
            self.idle = answer.reusable.then_some(stream);
        } else {
            // A reset instead of a farewell: a polite close would hold the local port for a
            // minute, and a connection a request soon runs out of ports.
            let _ = stream.set_zero_linger();
        }
        Ok(answer)
    }

    /// The body of the answer that [`Self::exchange`] returned last.
    pub(super) fn body(&self, answer: &Answer) -> &[u8] {
        self.decoder.body(answer)
    }
}

async fn connect(target: SocketAddr) -> Result<TcpStream, Failure> {
    let stream = TcpStream::connect(target)
        .await
        .map_err(|error| Failure::Connect(error.kind()))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Whether a kept connection has neither been closed by the server meanwhile (which is its
/// right) nor received anything. No system call unless something has happened on it.
fn is_quiet(stream: &TcpStream) -> bool {
    let mut byte = [0];
    matches!(stream.try_read(&mut byte), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}
