//! Chapter 8: what all variants stand on, so that each of them shows only how it blocks.
//!
//! Read in this order: `summary` (what is computed), `kept` (where a body is stored until then),
//! `bodies` (where it comes from), `error` (what may go wrong), `strategy` and `pool` (which thread
//! runs what blocks), `by_query` (any combination, chosen in the URL).

mod bodies;
pub mod by_query;
mod error;
mod kept;
mod pool;
mod strategy;
mod summary;

use std::path::PathBuf;

pub use bodies::{Bodies, Body};
pub use error::Error;
pub use kept::{IN_MEMORY, Keep, Kept};
use lab::Upstream;
pub use pool::Pool;
use serde::Deserialize;
pub use strategy::{Blocking, Strategy};
pub use summary::Summary;

/// What every request needs. Clones are cheap and share everything.
#[derive(Debug, Clone)]
pub struct Service {
    /// Where bodies come from.
    pub bodies: Bodies,
    /// Runs what blocks, for requests and variants that name a strategy.
    pub blocking: Blocking,
    files: PathBuf,
}

impl Service {
    /// A service that fetches bodies from `upstream` and stores large ones in files in the folder
    /// `files`. `extra` is the number of threads of the pool, and of permits.
    pub fn new(upstream: &Upstream, files: PathBuf, extra: usize) -> Self {
        Self {
            bodies: Bodies::of(upstream),
            blocking: Blocking::new(extra),
            files,
        }
    }

    /// An empty body, to which chunks are added: stored in memory while it is small, then in a file.
    pub fn keep(&self) -> Kept {
        Kept::by_size(self.files.clone())
    }

    /// An empty body that is stored in one way, whatever its length.
    ///
    /// # Errors
    ///
    /// When no file can be created.
    pub fn keep_as(&self, keep: Keep) -> std::io::Result<Kept> {
        Kept::always(keep, &self.files)
    }
}

/// The query of `GET /summarize`.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Asked {
    /// Length of the body to fetch.
    #[serde(default = "eight_mebibytes")]
    pub bytes: u64,
    /// How to store it; by its size if absent.
    pub keep: Option<Keep>,
    /// Which thread runs what blocks; as in the variant if absent.
    pub strategy: Option<Strategy>,
}

fn eight_mebibytes() -> u64 {
    8 * 1024 * 1024
}
