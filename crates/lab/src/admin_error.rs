//! The errors that the admin listener answers with.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

/// An error of the admin listener, as one sentence.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AdminError {
    #[error("{0}")]
    BadRequest(String),
    #[error("another profile is being taken; wait until it ends")]
    Busy,
    #[error("no such profile was taken yet; ask for one with ?seconds=10 first")]
    NothingYet,
    #[error("no request was in flight meanwhile; put load on the server and ask again")]
    NoRequests,
    #[error("{0}")]
    Unsupported(&'static str),
    #[error("the profiler failed: {0}")]
    Failed(String),
}

impl IntoResponse for AdminError {
    fn into_response(self) -> Response {
        let status = match self {
            Self::BadRequest(_) => StatusCode::BAD_REQUEST,
            Self::Busy => StatusCode::CONFLICT,
            Self::NothingYet | Self::NoRequests => StatusCode::NOT_FOUND,
            Self::Unsupported(_) => StatusCode::NOT_IMPLEMENTED,
            Self::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        (status, format!("{self}\n")).into_response()
    }
}
