//! Answers of the endpoints, in the types that every HTTP library of tokio's world knows.

use bytes::Bytes;
use diagnosis::printable;
use http::header::{self, HeaderName};
use http::{HeaderValue, Response, StatusCode};
use serde::Serialize;

use crate::error::EndpointError;

/// Body of an answer. With axum it is that of the service's own endpoints, which may be streams.
#[cfg(feature = "axum")]
pub(crate) type Body = axum::body::Body;

/// Body of an answer, which is whole.
#[cfg(not(feature = "axum"))]
pub(crate) type Body = http_body_util::Full<Bytes>;

/// An answer, with its headers.
#[derive(Debug)]
pub(crate) struct Answer(Response<Body>);

impl Answer {
    /// Makes an answer of this media type.
    pub(crate) fn of(kind: &'static str, body: impl Into<Bytes>) -> Self {
        let answer = Self(Response::new(Body::from(body.into())));
        answer.with(header::CONTENT_TYPE, HeaderValue::from_static(kind))
    }

    /// Makes an answer without a body.
    pub(crate) fn empty(status: StatusCode) -> Self {
        let mut response = Response::new(Body::from(Bytes::new()));
        *response.status_mut() = status;
        Self(response)
    }

    pub(crate) fn text(text: impl Into<Bytes>) -> Self {
        Self::of("text/plain; charset=utf-8", text)
    }

    pub(crate) fn svg(drawn: String) -> Self {
        Self::of("image/svg+xml", drawn)
    }

    /// Makes an answer of this value.
    ///
    /// # Errors
    ///
    /// Returns an error if the value cannot be written as JSON.
    pub(crate) fn json(value: &impl Serialize) -> Result<Self, EndpointError> {
        let json = serde_json::to_vec(value).map_err(EndpointError::failed)?;
        Ok(Self::of("application/json", json))
    }

    /// Makes an answer that a browser saves as a file of this name, which is visible ASCII.
    pub(crate) fn attachment(name: &'static str, bytes: Vec<u8>) -> Self {
        let disposition = format!("attachment; filename=\"{name}\"");
        let answer = Self::of("application/octet-stream", bytes);
        match HeaderValue::from_str(&disposition) {
            Ok(disposition) => answer.with(header::CONTENT_DISPOSITION, disposition),
            Err(_) => answer,
        }
    }

    pub(crate) fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers_mut().insert(name, value);
        self
    }

    pub(crate) fn with_status(mut self, status: StatusCode) -> Self {
        *self.0.status_mut() = status;
        self
    }

    /// Adds the number of samples behind it, as the header `x-samples`.
    pub(crate) fn with_samples(self, samples: u64) -> Self {
        let name = HeaderName::from_static("x-samples");
        self.with(name, HeaderValue::from(samples))
    }

    /// Adds sentences that a reader has to know, as the header `x-note`. They may have names of threads and functions,
    /// which may be anything.
    pub(crate) fn noted(self, note: Option<&str>) -> Self {
        let note = note.map(|note| printable(note).replace(['\n', '\t'], " "));
        match note.map(|note| HeaderValue::from_bytes(note.as_bytes())) {
            Some(Ok(note)) => self.with(HeaderName::from_static("x-note"), note),
            _ => self,
        }
    }

    pub(crate) fn into_response(self) -> Response<Body> {
        self.0
    }
}

impl From<EndpointError> for Answer {
    fn from(error: EndpointError) -> Self {
        let answer = Self::text(format!("{error}\n")).with_status(error.status());
        match error {
            // With this header, a browser asks its user for the token.
            EndpointError::NoToken => answer.with(
                header::WWW_AUTHENTICATE,
                HeaderValue::from_static("Basic realm=\"debug\""),
            ),
            _ => answer,
        }
    }
}
