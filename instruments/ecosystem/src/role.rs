//! Roles of threads.

use crate::names::PartMeaning;

/// Purpose of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Runs tasks of a tokio runtime with several threads.
    Worker,
    /// Runs requests of an actix service, on a runtime of its own.
    Actix,
    /// Runs tasks of a tokio runtime that has only this thread.
    CurrentThread,
    /// Runs a `spawn_blocking` job, or is a worker that gave its tasks away in `block_in_place`.
    Blocking,
    /// Belongs to a rayon pool.
    Rayon,
}

impl Role {
    /// Returns the role that a function on the stack shows, if it shows one.
    pub fn told_by(function: &str) -> Option<Self> {
        let roles = [
            (PartMeaning::Worker, Self::Worker),
            (PartMeaning::Blocking, Self::Blocking),
            (PartMeaning::Rayon, Self::Rayon),
            (PartMeaning::Actix, Self::Actix),
            (PartMeaning::CurrentThread, Self::CurrentThread),
        ];
        let found = roles.iter().find(|(meaning, _)| meaning.fits(function));
        found.map(|(_, role)| *role)
    }

    /// Returns its name in profiles.
    pub fn name(self) -> &'static str {
        match self {
            Self::Worker => "tokio worker",
            Self::Actix => "actix worker",
            Self::CurrentThread => "tokio current_thread",
            Self::Blocking => "tokio blocking thread",
            Self::Rayon => "rayon",
        }
    }

    /// Returns whether such a thread drives tasks, all of which wait while it is held.
    pub fn is_runtime(self) -> bool {
        matches!(self, Self::Worker | Self::Actix | Self::CurrentThread)
    }
}
