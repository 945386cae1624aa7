//! What a service on axum adds to the endpoints.

use axum::Router;
use axum::response::Response;
use hyper::body::Incoming;
use tower_service::Service;

/// Settings for axum.
#[derive(Debug, Clone, Default)]
pub(crate) struct OfAxum {
    pub(crate) trusts_loopback: bool,
    /// Endpoints that the service adds.
    pub(crate) further: Router,
}

impl OfAxum {
    /// Answers a request for a path that none of our endpoints has.
    pub(crate) async fn answer(&self, request: http::Request<Incoming>) -> Response {
        match self.further.clone().call(request).await {
            Ok(answer) => answer,
            Err(never) => match never {},
        }
    }
}
