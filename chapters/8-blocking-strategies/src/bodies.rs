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

use crate::Refusal;

/// The longest body that is taken.
const LONGEST: u64 = 64 * 1024 * 1024;

/// How much a connection reads ahead. Four times as much is the default, and 64 bodies at once would
/// hold that much in buffers alone.
const BUFFER: usize = 128 * 1024;

/// How long the upstream may be silent.
const PATIENCE: Duration = Duration::from_secs(10);

/// Fetches bodies. To clone it is to share its connections.
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
    pub(crate) fn of(upstream: &Upstream) -> Self {
        Self {
            client: Client::builder(TokioExecutor::new())
                .http1_max_buf_size(BUFFER)
                .build_http(),
            upstream: upstream.url().into(),
        }
    }

    /// Asks the upstream for a body of so many bytes. How many come, it decides: the body is
    /// chunked, so nobody knows its length before its end.
    ///
    /// # Errors
    ///
    /// When the upstream does not answer, or not with a body.
    pub async fn fetch(&self, bytes: u64) -> Result<Body, Refusal> {
        let url = format!("{}bodies/{bytes}", self.upstream);
        let url = url.parse().map_err(Refusal::upstream)?;
        let response = timeout(PATIENCE, self.client.get(url))
            .await
            .map_err(Refusal::upstream)?
            .map_err(Refusal::upstream)?;
        if !response.status().is_success() {
            return Err(Refusal::upstream(response.status().to_string()));
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
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Refusal> {
        loop {
            let next = timeout(PATIENCE, self.incoming.frame());
            let Some(frame) = next.await.map_err(Refusal::upstream)? else {
                return Ok(None);
            };
            // What is no data is a trailer.
            let Ok(chunk) = frame.map_err(Refusal::upstream)?.into_data() else {
                continue;
            };
            self.length += chunk.len() as u64;
            if self.length > LONGEST {
                return Err(Refusal::TooLarge(LONGEST));
            }
            return Ok(Some(chunk));
        }
    }

    // ANCHOR: batch
    /// The next chunks, `enough` bytes of them or more; fewer before the end, none at the end.
    ///
    /// # Errors
    ///
    /// As [`Body::chunk`].
    pub async fn batch(&mut self, enough: usize) -> Result<Vec<Bytes>, Refusal> {
        let mut batch = Vec::new();
        let mut length = 0;
        while length < enough {
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
