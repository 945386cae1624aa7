//! Four strategies for running what blocks.

use std::sync::Arc;

use serde::Deserialize;
use tokio::sync::Semaphore;
use tokio::task::{block_in_place, spawn_blocking};

use crate::{Error, Pool};

/// Which thread runs what blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// The reactor's thread, as if it did not block.
    Direct,
    /// The reactor's thread, after a permit; another thread is the reactor meanwhile.
    Permit,
    /// A thread of a pool of its own.
    Dispatch,
    /// A thread of tokio's own pool.
    SpawnBlocking,
}

impl Strategy {
    /// All of them, the plainest first.
    pub const ALL: [Self; 4] = [
        Self::Direct,
        Self::Permit,
        Self::Dispatch,
        Self::SpawnBlocking,
    ];

    /// As it stands in a URL.
    pub fn key(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Permit => "permit",
            Self::Dispatch => "dispatch",
            Self::SpawnBlocking => "spawn_blocking",
        }
    }
}

/// The permits and the pool of those strategies that need some. Clones share them.
#[derive(Debug, Clone)]
pub struct Blocking {
    permits: Arc<Semaphore>,
    pool: Arc<Pool>,
}

impl Blocking {
    /// So many permits, and as many threads in the pool.
    pub fn new(extra: usize) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(extra)),
            pool: Arc::new(Pool::new(extra)),
        }
    }

    // ANCHOR: run
    /// Runs `work` by a strategy and waits for its result.
    ///
    /// # Errors
    ///
    /// When the work panics on another thread.
    ///
    /// # Panics
    ///
    /// By [`Strategy::Permit`] on a current-thread runtime, which has no other thread for its tasks.
    pub async fn run<T, F>(&self, strategy: Strategy, work: F) -> Result<T, Error>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        match strategy {
            Strategy::Direct => Ok(work()),
            Strategy::Permit => {
                let permit = self.permits.acquire().await;
                let _permit = permit.map_err(|_closed| Error::Panicked)?;
                Ok(block_in_place(work))
            }
            Strategy::Dispatch => self.pool.run(work).await.ok_or(Error::Panicked),
            Strategy::SpawnBlocking => spawn_blocking(work).await.map_err(|_| Error::Panicked),
        }
    }
    // ANCHOR_END: run
}
