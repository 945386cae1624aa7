//! What a request needs, and what it asks for.

use std::path::PathBuf;

use lab::Upstream;
use serde::Deserialize;

use crate::{Blocking, Bodies, Keep, Kept, Strategy};

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
