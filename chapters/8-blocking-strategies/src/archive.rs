//! The archive, by the blocking client that it is sold with, and a body that it keeps.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ureq::Agent;

use crate::{BLOCKING_THREADS, Error, Summary};

/// Client of the archive that keeps bodies. Clones share their connections.
#[derive(Debug, Clone)]
pub struct Archive {
    agent: Agent,
    url: Arc<str>,
    bodies: Arc<AtomicU64>,
}

/// A body in the archive, or the parts of it that have been sent there.
#[derive(Debug)]
pub struct KeptBody {
    agent: Agent,
    url: String,
    parts: u64,
}

impl Archive {
    /// The archive at `url`.
    pub fn at(url: &str) -> Self {
        let config = Agent::config_builder()
            .max_idle_connections_per_host(BLOCKING_THREADS)
            // Tells `/metrics` which threads wait for the archive.
            .middleware(lab::count_call);
        Self {
            agent: config.build().into(),
            url: url.into(),
            bodies: Arc::default(),
        }
    }

    /// A body of which nothing has been sent. The archive is not asked for that.
    pub fn create(&self) -> KeptBody {
        let number = self.bodies.fetch_add(1, Ordering::Relaxed);
        KeptBody {
            agent: self.agent.clone(),
            url: format!("{}{number}", self.url),
            parts: 0,
        }
    }
}

impl KeptBody {
    /// Returns the address of the part with this number; the first is 0.
    pub fn url(&self, part: u64) -> String {
        format!("{}/{part}", self.url)
    }

    // ANCHOR: push
    /// Sends one more part. Returns when the archive has it.
    ///
    /// # Errors
    ///
    /// Returns an error if the archive does not take it, for instance because it is full.
    pub fn push(&mut self, part: &[u8]) -> Result<(), Error> {
        self.agent.put(self.url(self.parts)).send(part)?;
        self.parts += 1;
        Ok(())
    }
    // ANCHOR_END: push

    /// Does the same as [`KeptBody::push`], but takes and returns the body, so that it can be sent to
    /// another thread and back.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`KeptBody::push`].
    pub fn append(mut self, part: &[u8]) -> Result<Self, Error> {
        self.push(part)?;
        Ok(self)
    }

    // ANCHOR: summary
    /// Gets all parts back from the archive.
    ///
    /// # Errors
    ///
    /// When the archive does not give one of them.
    pub fn summary(self) -> Result<Summary, Error> {
        let mut summary = Summary::default();
        for part in 0..self.parts {
            let mut response = self.agent.get(self.url(part)).call()?;
            summary.update(&response.body_mut().read_to_vec()?);
        }
        Ok(summary)
    }
    // ANCHOR_END: summary
}
