//! Errors of a run that has no outcome.

use std::net::SocketAddr;

use children::cpus::PinError;
use children::limits::FileLimit;
use thiserror::Error;

/// Reason why a run has no outcome.
#[derive(Debug, Error)]
pub enum GeneratorError {
    /// No server listens.
    #[error("no server answers at {target}: {reason}; start it first")]
    Unreachable {
        /// Address that was tried.
        target: SocketAddr,
        /// The system's words.
        reason: std::io::Error,
    },
    /// Too few file descriptors for the users' connections.
    #[error(transparent)]
    Files(#[from] FileLimit),
    /// A CPU that the run may not use.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// A load that nothing can send.
    #[error("the load cannot be sent: {0}")]
    Load(&'static str),
    /// The generator itself failed.
    #[error("a thread of the load generator failed: {0}")]
    Thread(String),
    /// The interrupt flag was set.
    #[error("the load was interrupted")]
    Interrupted,
}
