//! Where bodies come from: the upstream, a chunk at a time.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use lab::Upstream;
use tokio::time::timeout;

use crate::Error;

/// The longest body that the service accepts.
const LONGEST: u64 = 64 * 1024 * 1024;

/// How much a connection reads ahead: a quarter of the default, so that the buffers of 64 bodies at
/// once take 8 MiB and not 32.
const BUFFER: usize = 128 * 1024;

/// Bytes that are off-loaded to another thread at once. To off-load costs some microseconds, however
/// many bytes it is, and each body holds so many bytes while it waits for a thread.
pub const BATCH: usize = 256 * 1024;

/// How long the upstream may be silent.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Fetches bodies. Clones share their connections.
#[derive(Debug, Clone)]
pub struct Bodies {
    client: Client<HttpConnector, Empty<Bytes>>,
    upstream: Arc<str>,
}

/// A body that is coming in.
#[derive(Debug)]
pub struct Body {
    incoming: Incoming,
    length: u64,
}

impl Bodies {
    /// Fetches them from `upstream`.
    pub fn of(upstream: &Upstream) -> Self {
        Self {
            client: Client::builder(TokioExecutor::new())
                .http1_max_buf_size(BUFFER)
                .build_http(),
            upstream: upstream.url().into(),
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
        let url = url.parse().map_err(Error::upstream)?;
        let response = timeout(TIMEOUT, self.client.get(url))
            .await
            .map_err(Error::upstream)?
            .map_err(Error::upstream)?;
        if !response.status().is_success() {
            return Err(Error::upstream(response.status().to_string()));
        }
        Ok(Body {
            incoming: response.into_body(),
            length: 0,
        })
    }
}

impl Body {
    /// The next chunk; `None` at the end.
    ///
    /// # Errors
    ///
    /// When the upstream fails or falls silent, or the body is longer than the service takes.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            let next = timeout(TIMEOUT, self.incoming.frame());
            let Some(frame) = next.await.map_err(Error::upstream)? else {
                return Ok(None);
            };
            // A frame without data carries trailers: skip it.
            let Ok(chunk) = frame.map_err(Error::upstream)?.into_data() else {
                continue;
            };
            self.length += chunk.len() as u64;
            if self.length > LONGEST {
                return Err(Error::TooLarge(LONGEST));
            }
            return Ok(Some(chunk));
        }
    }

    // ANCHOR: batch
    /// Chunks until they have [`BATCH`] bytes together. Fewer bytes at the end of the body, and no
    /// chunk after it.
    ///
    /// # Errors
    ///
    /// As [`Body::chunk`].
    pub async fn batch(&mut self) -> Result<Vec<Bytes>, Error> {
        let mut batch = Vec::new();
        let mut length = 0;
        while length < BATCH {
            let Some(chunk) = self.chunk().await? else {
                break;
            };
            length += chunk.len();
            batch.push(chunk);
        }
        Ok(batch)
    }
    // ANCHOR_END: batch
}
