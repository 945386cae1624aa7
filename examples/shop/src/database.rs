//! Stands in for a database: a pool of connections, and queries that take a millisecond.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

/// A pool of connections.
pub struct Database {
    free: Semaphore,
    /// Connections that somebody holds without a query on them, now and at most.
    idle: AtomicU64,
    most_idle: AtomicU64,
    queries: AtomicU64,
}

/// A connection; dropping it gives it back.
pub struct Connection<'a> {
    database: &'a Database,
    /// `None` only when the semaphore is closed, which never happens.
    _permit: Option<SemaphorePermit<'a>>,
    has_read: bool,
}

impl Database {
    pub fn new(connections: usize) -> Self {
        Self {
            free: Semaphore::new(connections),
            idle: AtomicU64::new(0),
            most_idle: AtomicU64::new(0),
            queries: AtomicU64::new(0),
        }
    }

    /// Waits until a connection is free.
    pub async fn connection(&self) -> Connection<'_> {
        Connection {
            database: self,
            _permit: self.free.acquire().await.ok(),
            has_read: false,
        }
    }

    /// Connections at most that were held after their query while another task ran.
    pub fn most_idle(&self) -> u64 {
        self.most_idle.load(Relaxed)
    }

    pub fn queries(&self) -> u64 {
        self.queries.load(Relaxed)
    }
}

impl Connection<'_> {
    /// The price of an order, in cents.
    pub async fn price_of(&mut self, order: u32) -> u32 {
        self.database.queries.fetch_add(1, Relaxed);
        tokio::time::sleep(Duration::from_millis(1)).await;
        self.has_read = true;
        self.database.idle.fetch_add(1, Relaxed);
        100 + order % 900
    }
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        if self.has_read {
            // The one that is given back counts until here, so a connection that is given back at
            // once makes this 0.
            let others = self.database.idle.fetch_sub(1, Relaxed) - 1;
            self.database.most_idle.fetch_max(others, Relaxed);
        }
    }
}
