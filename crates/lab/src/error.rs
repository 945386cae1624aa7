//! Errors before a server serves.

use std::fmt;
use std::net::SocketAddr;

use debug_endpoints::ListenError;

/// A failure to start or to serve, as one sentence with what to do.
#[derive(thiserror::Error)]
pub enum Error {
    /// The address is taken, most likely by another program.
    #[error(
        "cannot listen on {address} ({source}): stop the program that has it, or choose another port with \
         {option} (0 picks a free one)"
    )]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// The option that moves this listener.
        option: &'static str,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The admin listener's thread or runtime could not be started.
    #[error(transparent)]
    Admin(#[from] ListenError),
    /// The embedded upstream could not be started.
    #[error("cannot start the embedded upstream: {0}; name another one with --upstream URL")]
    Upstream(std::io::Error),
    /// The archive could not be started.
    #[error("cannot start the archive: {0}")]
    Archive(std::io::Error),
    /// The upstream that was named cannot be used.
    #[error("the upstream {url} cannot be used: {reason}; start it, or leave out --upstream")]
    OutsideUpstream {
        /// URL as the reader named it.
        url: String,
        /// Reason why it cannot be reached.
        reason: String,
    },
    /// A resource of the chapter cannot be used; the reason, in a sentence.
    #[error("{0}")]
    Unusable(String),
    /// The data set is larger than what is free.
    #[error(
        "{texts} texts take {needed_mib} MiB, and {free_mib} MiB are free: ask for fewer with --texts"
    )]
    Memory {
        /// Number of texts to keep.
        texts: u64,
        /// Memory that they take, in MiB.
        needed_mib: u64,
        /// Free memory, in MiB.
        free_mib: u64,
    },
    /// A runtime could not be started.
    #[error("cannot start a runtime: {0}")]
    Runtime(#[from] std::io::Error),
    /// Standard output is closed, so the addresses cannot be printed.
    #[error("cannot print the addresses: {0}")]
    Announce(std::io::Error),
}

// `fn main() -> Result<(), lab::Error>` prints the `Debug` form: let it be the sentence.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
