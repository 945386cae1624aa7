//! The errors that a request may get instead of a summary.

use std::io::{self, ErrorKind};

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

/// Why a request has no summary. No error affects another request.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Longer than the service keeps: status 413.
    #[error("the body is longer than {0} bytes")]
    TooLarge(u64),
    /// No room for it: status 507.
    #[error("there is no room for the body: {0}")]
    NoRoom(io::Error),
    /// The upstream gave no body, or not all of it: status 502.
    #[error("the upstream failed: {0}")]
    Upstream(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A file could not be made or read: status 500.
    #[error("the body could not be kept: {0}")]
    File(io::Error),
    /// The work panicked on another thread: status 500.
    #[error("the work panicked")]
    Panicked,
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
                Self::NoRoom(error)
            }
            _ => Self::File(error),
        }
    }
}

/// `spawn_blocking(work).await?` gives up when the work panicked.
impl From<tokio::task::JoinError> for Error {
    fn from(_: tokio::task::JoinError) -> Self {
        Self::Panicked
    }
}

/// `pool.run(work).await?` does so, too.
impl From<tokio::sync::oneshot::error::RecvError> for Error {
    fn from(_: tokio::sync::oneshot::error::RecvError) -> Self {
        Self::Panicked
    }
}

impl Error {
    pub(crate) fn upstream(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Upstream(error.into())
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let status = match self {
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::NoRoom(_) => StatusCode::INSUFFICIENT_STORAGE,
            Self::Upstream(_) => StatusCode::BAD_GATEWAY,
            Self::File(_) | Self::Panicked => StatusCode::INTERNAL_SERVER_ERROR,
        };
        (status, self.to_string()).into_response()
    }
}
