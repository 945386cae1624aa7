//! Errors: answers that are no profile, and why there is no listener.

use std::net::SocketAddr;

use http::StatusCode;

/// Answer that is no profile, as one sentence.
#[derive(Debug, thiserror::Error)]
#[allow(dead_code)] // Not every build has what each of them is about.
pub(crate) enum EndpointError {
    #[error("{0}")]
    BadRequest(String),
    #[error("another {0} is being taken; wait until it ends")]
    Busy(&'static str),
    #[error("no such profile was taken yet; ask for one with ?seconds=10 first")]
    NothingYet,
    #[error("incidents are not recorded: call DebugEndpoints::record_incidents(Incidents::new())")]
    NotRecorded,
    #[error("{0}")]
    NoRequests(String),
    #[error("{0}")]
    Unsupported(&'static str),
    #[error("{0}")]
    WithoutTypes(String),
    #[error("{0}")]
    Unavailable(String),
    #[error("the profiler failed: {0}")]
    Failed(String),
    #[error("this needs the token: send `Authorization: Bearer TOKEN`, or it as the password")]
    NoToken,
    #[error("{0}")]
    Forbidden(&'static str),
}

impl EndpointError {
    pub(crate) fn failed(error: impl std::fmt::Display) -> Self {
        Self::Failed(error.to_string())
    }

    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::BadRequest(_) => StatusCode::BAD_REQUEST,
            Self::Busy(_) => StatusCode::CONFLICT,
            Self::NothingYet | Self::NotRecorded | Self::NoRequests(_) => StatusCode::NOT_FOUND,
            Self::Unsupported(_) | Self::WithoutTypes(_) => StatusCode::NOT_IMPLEMENTED,
            Self::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
            Self::NoToken => StatusCode::UNAUTHORIZED,
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
        }
    }
}

/// Error of a listener, as one sentence with the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// Other machines could ask, and would need no token.
    #[error(
        "{0} can be reached from other machines, and there is no token: listen on 127.0.0.1, or set \
         one with DebugEndpoints::token"
    )]
    Exposed(SocketAddr),
    /// The address cannot be used, or the listener's thread could not be started.
    #[error("the debug listener cannot be started: {0}")]
    Io(#[from] std::io::Error),
}

/// Error of a text that is no token, as one sentence with the remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The text is empty, or white space alone.
    #[error(
        "the token is empty, which would let nobody in: give one, or do not call DebugEndpoints::token"
    )]
    Empty,
    /// A header cannot carry the text.
    #[error(
        "character {place} of the token is not visible ASCII, and a header could not carry it: use letters, \
         digits and signs, such as those that `openssl rand -hex 32` prints"
    )]
    NotAscii {
        /// Position of the character, from 1.
        place: usize,
    },
}
