//! Upstream from which bodies come, a part at a time.

use bytes::{Bytes, BytesMut};
use reqwest::{Client, Response};

use crate::Error;

/// The longest body that the service accepts.
const LONGEST: u64 = 64 * 1024 * 1024;

/// The length of a part. Each body holds so many bytes while it waits for the archive.
pub const PART: usize = 256 * 1024;

/// Fetches bodies. Clones share their connections.
#[derive(Debug, Clone)]
pub struct Bodies {
    client: Client,
    upstream: String,
}

/// A body that is coming in.
#[derive(Debug)]
pub struct Body {
    response: Response,
    length: u64,
    /// Bytes that came after the last whole part.
    rest: BytesMut,
}

impl Bodies {
    /// Fetches them by `client` from `upstream`, a URL with a slash at the end.
    pub fn new(client: Client, upstream: &str) -> Self {
        Self {
            client,
            upstream: upstream.to_owned(),
        }
    }

    /// Asks the upstream for a body of so many bytes. The upstream may send more or fewer: the body is
    /// chunked, so its length is known at its end.
    ///
    /// # Errors
    ///
    /// When the upstream does not answer, or not with a body.
    pub async fn fetch(&self, bytes: u64) -> Result<Body, Error> {
        let url = format!("{}bodies/{bytes}", self.upstream);
        let response = self.client.get(url).send().await?.error_for_status()?;
        Ok(Body {
            response,
            length: 0,
            rest: BytesMut::new(),
        })
    }
}

impl Body {
    /// The next [`PART`] bytes. Fewer at the end of the body, and `None` after it.
    ///
    /// # Errors
    ///
    /// When the upstream fails or falls silent, or the body is longer than the service takes.
    pub async fn part(&mut self) -> Result<Option<Bytes>, Error> {
        while self.rest.len() < PART
            && let Some(chunk) = self.response.chunk().await?
        {
            self.length += chunk.len() as u64;
            if self.length > LONGEST {
                return Err(Error::TooLarge(LONGEST));
            }
            self.rest.extend_from_slice(&chunk);
        }
        let part = self.rest.split_to(self.rest.len().min(PART));
        Ok((!part.is_empty()).then(|| part.freeze()))
    }
}
