//! Answers of the service, whichever client it asks the upstream with.

use std::error::Error;
use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

/// Longest time that a request waits for the upstream.
///
/// No client has such a limit by default. Without one, an upstream that hangs would keep every request
/// of this service waiting.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(3);

/// Answer of the upstream, which this service passes on.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Message {
    status: u16,
    msg: String,
}

/// `GET /static`: the same answer without asking anybody.
pub(crate) async fn at_once() -> Json<Message> {
    Json(Message {
        status: 200,
        msg: "Good Luck!".to_owned(),
    })
}

/// The upstream gave no answer that could be passed on: status 502.
///
/// Made by `?` of any error. The upstream's failure is an answer of this service like any other;
/// an `unwrap` would hang up on the client instead.
#[derive(Debug)]
pub(crate) struct BadGateway(Box<dyn Error + Send + Sync>);

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for BadGateway {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for BadGateway {
    /// Says why, down to what the system said. A service that strangers can reach writes this to
    /// its log instead.
    fn into_response(self) -> Response {
        let mut why = self.0.to_string();
        let mut cause = self.0.source();
        while let Some(error) = cause {
            why = format!("{why}: {error}");
            cause = error.source();
        }
        (StatusCode::BAD_GATEWAY, why).into_response()
    }
}
