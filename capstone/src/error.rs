//! What a handler answers when it cannot do what it was asked for.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::{Mutex, PoisonError};

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// How often each status was answered.
static ANSWERED: Mutex<BTreeMap<u16, u64>> = Mutex::new(BTreeMap::new());

#[derive(Debug, thiserror::Error)]
pub enum AppError {
    #[error("log in first")]
    NotLoggedIn,
    #[error("this is not yours")]
    NotYours,
    #[error("not found")]
    NotFound,
    #[error("{0}")]
    Invalid(&'static str),
    #[error("{0}")]
    Conflict(&'static str),
    #[error("the payment service failed: {0}")]
    Payments(#[from] reqwest::Error),
    #[error("database: {0}")]
    Database(#[from] sqlx::Error),
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error("{0}")]
    Other(String),
}

impl AppError {
    pub fn other(error: impl std::fmt::Display) -> Self {
        Self::Other(error.to_string())
    }
}

impl IntoResponse for AppError {
    fn into_response(self) -> Response {
        let status = match self {
            Self::NotLoggedIn => StatusCode::UNAUTHORIZED,
            Self::NotYours => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Invalid(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Conflict(_) => StatusCode::CONFLICT,
            Self::Payments(_) => StatusCode::BAD_GATEWAY,
            Self::Database(_) | Self::Io(_) | Self::Other(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        if status.is_server_error() {
            tracing::error!(error = %self, "request failed");
        }
        let mut answered = ANSWERED.lock().unwrap_or_else(PoisonError::into_inner);
        *answered.entry(status.as_u16()).or_default() += 1;
        drop(answered);
        (status, Json(json!({ "error": self.to_string() }))).into_response()
    }
}

/// The counts for `/metrics`.
pub fn metrics(text: &mut String) -> fmt::Result {
    let answered = ANSWERED
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    writeln!(text, "# TYPE shop_errors_total counter")?;
    for (status, count) in answered {
        writeln!(text, "shop_errors_total{{status=\"{status}\"}} {count}")?;
    }
    Ok(())
}
