//! Chapter 8: what all variants stand on, so that each of them shows only which thread blocks.
//!
//! Read in this order: `body_file` (a body in a file, and its summary), `bodies` (where it comes from),
//! `error` (what may go wrong), `pool` (threads of our own).

mod bodies;
mod body_file;
mod error;
mod pool;

use axum::extract::State;
use lab::{Database, Files};
use serde::Deserialize;

pub use bodies::{BATCH, Bodies, Body};
pub use body_file::{BodyFile, Summary};
pub use error::Error;
pub use pool::Pool;

/// What every request needs. Clones are cheap and share everything.
#[derive(Debug, Clone)]
pub struct Service {
    /// Where bodies come from.
    pub bodies: Bodies,
    /// What a ping asks whether it is there.
    pub database: Database,
    /// Where files for bodies are made.
    pub files: Files,
}

impl Service {
    /// An empty file for a body.
    ///
    /// # Errors
    ///
    /// When none can be created.
    pub fn create_file(&self) -> std::io::Result<BodyFile> {
        self.files.create().map(BodyFile::from)
    }
}

// ANCHOR: ping
/// A bystander: asks the database whether it is there, and has nothing to do with files.
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
