//! A user's connection: opened when needed, kept if the load keeps it, one request at a time.

use super::answer::{Answer, Decoder};
use super::failure::Failure;
use super::stream::Stream;
use super::target::Target;

#[derive(Debug)]
pub(super) struct Connection {
    target: Target,
    keep_alive: bool,
    /// `None` while a request is on its way, too: if it fails or times out, its connection is
    /// dropped with it, and a late answer cannot be taken for the next one's.
    idle: Option<Stream>,
    decoder: Decoder,
}

impl Connection {
    /// None is opened yet. An answer may have `largest` bytes.
    pub(super) fn new(target: Target, keep_alive: bool, largest: usize) -> Self {
        Self {
            target,
            keep_alive,
            idle: None,
            decoder: Decoder::new(largest),
        }
    }

    /// Opens the connection before it is needed.
    pub(super) async fn open(&mut self) -> Result<(), Failure> {
        self.idle = Some(Stream::connect(&self.target).await?);
        Ok(())
    }

    /// Sends `request` and reads the whole answer, over a new connection if there is none.
    pub(super) async fn exchange(&mut self, request: &[u8]) -> Result<Answer, Failure> {
        let kept = self.idle.take();
        let mut stream = match kept.and_then(Stream::if_quiet) {
            Some(stream) => stream,
            None => Stream::connect(&self.target).await?,
        };
        self.decoder.reset();
        stream.send(request).await?;
        let answer = loop {
            let count = stream.receive(self.decoder.room()).await?;
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
            stream.reset();
        }
        Ok(answer)
    }

    /// The body of the answer that [`Self::exchange`] returned last.
    pub(super) fn body(&self, answer: &Answer) -> &[u8] {
        self.decoder.body(answer)
    }
}
