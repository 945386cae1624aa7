//! The errors that a request may get instead of a summary.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

/// Why a request has no summary. No error affects another request.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Longer than the service keeps: status 413.
    #[error("the body is longer than {0} bytes")]
    TooLarge(u64),
    /// No room for it: status 507.
    #[error("the archive has no room for the body")]
    NoRoom,
    /// The archive failed: status 502.
    #[error("the archive failed: {0}")]
    Archive(ureq::Error),
    /// Another server failed, or gave not all of the body: status 502.
    #[error("another server failed: {0}")]
    Upstream(reqwest::Error),
    /// The work panicked on another thread: status 500.
    #[error("the work panicked")]
    Panicked,
}

impl From<ureq::Error> for Error {
    fn from(error: ureq::Error) -> Self {
        match error {
            ureq::Error::StatusCode(507) => Self::NoRoom,
            error => Self::Archive(error),
        }
    }
}

impl From<reqwest::Error> for Error {
    fn from(error: reqwest::Error) -> Self {
        match error.status() {
            Some(StatusCode::INSUFFICIENT_STORAGE) => Self::NoRoom,
            _ => Self::Upstream(error),
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

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let status = match self {
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::NoRoom => StatusCode::INSUFFICIENT_STORAGE,
            Self::Archive(_) | Self::Upstream(_) => StatusCode::BAD_GATEWAY,
            Self::Panicked => StatusCode::INTERNAL_SERVER_ERROR,
        };
        (status, self.to_string()).into_response()
    }
}
