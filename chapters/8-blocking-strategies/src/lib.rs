//! Chapter 8: what all variants stand on, so that each of them shows only which thread blocks.
//!
//! Read in this order: `bodies` (where a body comes from), `archive` (where it is kept), `summary` (what
//! is answered), `error` (what may go wrong), `pool` (threads of our own).

mod archive;
mod bodies;
mod error;
mod pool;
mod summary;

use std::time::Duration;

use axum::extract::State;
use lab::Database;
use serde::Deserialize;

pub use archive::{Archive, KeptBody};
pub use bodies::{Bodies, Body, PART};
pub use error::Error;
pub use pool::Pool;
pub use summary::Summary;

/// Most threads for code that blocks.
pub const BLOCKING_THREADS: usize = 8;

/// State for every request. Clones are cheap and share everything.
#[derive(Debug, Clone)]
pub struct Service {
    /// Upstream from which bodies come.
    pub bodies: Bodies,
    /// Archive in which they are kept.
    pub archive: Archive,
    /// Database that a ping calls.
    pub database: Database,
    /// An asynchronous client for any other server.
    pub client: reqwest::Client,
}

impl Service {
    /// `upstream` and `archive` are URLs with a slash at the end.
    ///
    /// # Errors
    ///
    /// When there can be no client.
    pub fn new(upstream: &str, archive: &str, database: Database) -> Result<Self, Error> {
        let client = reqwest::Client::builder()
            .read_timeout(Duration::from_secs(10))
            .build()?;
        Ok(Self {
            bodies: Bodies::new(client.clone(), upstream),
            archive: Archive::at(archive),
            database,
            client,
        })
    }
}

// ANCHOR: ping
/// A bystander: asks the database whether it is there, and has nothing to do with the archive.
pub async fn ping(State(service): State<Service>) -> &'static str {
    service.database.call().await;
    "pong"
}
// ANCHOR_END: ping

/// The query of `GET /summarize`.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct BodyQuery {
    /// Length of the body to fetch.
    #[serde(default = "one_mebibyte")]
    pub bytes: u64,
}

fn one_mebibyte() -> u64 {
    1024 * 1024
}
