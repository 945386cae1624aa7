//! Chapter 8: what all variants stand on, so that each of them shows only how it blocks.
//!
//! Read in this order: `summary` (what is computed), `kept` (where a body lives meanwhile), `bodies`
//! (where it comes from), `refusal` (what may go wrong), `strategy` and `pool` (who may block),
//! `by_query` (any combination, asked for in the URL).

mod bodies;
pub mod by_query;
mod kept;
mod pool;
mod refusal;
mod strategy;
mod summary;

use std::path::PathBuf;

pub use bodies::{Bodies, Body};
pub use kept::{IN_MEMORY, Keep, Kept};
use lab::Upstream;
pub use pool::Pool;
pub use refusal::Refusal;
use serde::Deserialize;
pub use strategy::{Blocking, Strategy};
pub use summary::Summary;

/// What every request needs. Clones are cheap and share everything.
#[derive(Debug, Clone)]
pub struct Service {
    /// Where bodies come from.
    pub bodies: Bodies,
    /// Who may block, for those who ask for a strategy by name.
    pub blocking: Blocking,
    files: PathBuf,
}

impl Service {
    /// A service that fetches from `upstream` and puts large bodies into files in the folder
    /// `files`, with as many extra threads or permits as `extra` says.
    pub fn new(upstream: &Upstream, files: PathBuf, extra: usize) -> Self {
        Self {
            bodies: Bodies::of(upstream),
            blocking: Blocking::new(extra),
            files,
        }
    }

    /// A place for a body of unknown length: in memory while it is small, then in a file.
    pub fn keep(&self) -> Kept {
        Kept::by_size(self.files.clone())
    }

    /// A place of a certain kind.
    ///
    /// # Errors
    ///
    /// When there can be no file.
    pub fn keep_as(&self, keep: Keep) -> std::io::Result<Kept> {
        Kept::always(keep, &self.files)
    }
}

/// The query of `GET /summarize`.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Asked {
    /// How long a body to fetch.
    #[serde(default = "eight_mebibytes")]
    pub bytes: u64,
    /// Where to keep it; by its size unless that is said.
    pub keep: Option<Keep>,
    /// How to block; as the variant does unless that is said.
    pub strategy: Option<Strategy>,
}

fn eight_mebibytes() -> u64 {
    8 * 1024 * 1024
}
